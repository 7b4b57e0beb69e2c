#!/usr/bin/env bash
# What is written on a terminal: colours as NO_COLOR, CLICOLOR, CLICOLOR_FORCE and TERM have it, tables that fit, and in
# a line what --explain tells at length.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
unset NO_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS
export TERM=xterm

# on_terminal COLUMNS COMMAND...: prints what the command writes on a terminal of so many columns.
cat >on_terminal.py <<'END_OF_SCRIPT'
import fcntl, os, pty, struct, sys, termios
columns, command = int(sys.argv[1]), sys.argv[2:]
reader, writer = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.close(writer)
    os.read(reader, 1)
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
os.close(writer)
text = b""
try:
    while part := os.read(terminal, 4096):
        text += part
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(text.replace(b"\r\n", b"\n"))
END_OF_SCRIPT
on_terminal() { run python3 on_terminal.py "$@"; }
escape=$'\033'
compare="$SLUICE compare --runs 1 --warmup 0 --with system,sluice"

coloured() { case "$output" in *"$escape[1m"*) ;; *) fail "$last: no colours: $output" ;; esac; }
uncoloured() { ! grep -q "$escape\[[0-9]*m" <<<"$output" || fail "$last: colours: $output"; }
plain() { case "$output" in *"$escape"*) fail "$last: escape sequences: $output" ;; esac; }
on_terminal 80 $compare -- true
coloured
NO_COLOR= on_terminal 80 $compare -- true
coloured
NO_COLOR=1 on_terminal 80 $compare -- true
uncoloured
CLICOLOR=0 on_terminal 80 $compare -- true
uncoloured
TERM=dumb on_terminal 80 $compare -- true
plain
run $compare -- true
plain
CLICOLOR_FORCE=1 run $compare -- true
coloured
CLICOLOR_FORCE=0 run $compare -- true
plain
CLICOLOR_FORCE=1 NO_COLOR=1 run $compare -- true
plain

# fits COLUMNS: no line of the tables is wider.
fits() {
  python3 -c 'import re, sys
wide = [line for line in re.sub("\033\\[[0-9]*[mK]|.*\r", "", sys.stdin.read()).split("\n") if len(line) > int(sys.argv[1])]
sys.exit(f"too wide: {wide}" if wide else 0)' "$1" <<<"$output" || fail "$last: $output"
}
run $compare -- true
expect_in output switches
case "$output" in *'left out'*) fail "left out where there is no terminal: $output" ;; esac
all_columns=$(grep '^median of a run' <<<"$output")
on_terminal 200 $compare -- true
expect_in output "$all_columns"
on_terminal 80 $compare --wide -- true
expect_in output "$all_columns"
on_terminal 80 $compare -- true
fits 80
expect_in output '(left out, for --wide: '
on_terminal 55 $compare -- true
fits 55
# What says nothing about who is better goes first, from the right; what does, stays.
output=$(tr '\n' ' ' <<<"$output") expect_in output 'page faults; major faults; switches)'
grep -q '^ .*wall, ms .*peak memory, MiB$' <<<"$output" || fail "the verdict's columns are left out: $output"
case "$output" in *'left out'*'wall, ms;'* | *'left out'*'peak memory, MiB;'*) fail "left out before others: $output" ;; esac

python3 "$fixtures/damaged_json.py" --write compare c.json
for columns in 79 60 50; do
  on_terminal $columns "$SLUICE" compare --diff c.json c.json
  fits $columns
  expect_in output verdict
done
expect_in output 'left out'
on_terminal 70 "$SLUICE" options
fits 70

# Statistics: what says least goes first, and a line says what is missing.
run "$SLUICE" stats "$fixtures/before.json"
all_of_it=$output
on_terminal 100 "$SLUICE" stats "$fixtures/before.json"
[ "$output" = "$all_of_it" ] || fail "$last: not as it is where there is no terminal: $output"
on_terminal 60 "$SLUICE" stats --wide "$fixtures/before.json"
[ "$output" = "$all_of_it" ] || fail "$last: not as it is where there is no terminal: $output"
on_terminal 80 "$SLUICE" stats "$fixtures/before.json"
fits 80
expect_in output '  active        1.56 MiB of slabs, large blocks and chunks in use'
expect_in output '1.26 MiB  24.8 %'  # the columns are narrower, and all are there
on_terminal 60 "$SLUICE" stats "$fixtures/before.json"
fits 60
grep -q '^  block  *mallocs .* slabs *space$' <<<"$output" || fail "$last: other columns than from the left: $output"
expect_in output '(left out, for --wide: use, lost to rounding)'
on_terminal 30 "$SLUICE" stats "$fixtures/before.json"
fits 30
grep -q '^  block *mallocs *live$' <<<"$output" || fail "$last: the column of live blocks is not kept: $output"
expect_in output $'4 on threads\n              without a cache'
cp "$fixtures/before.json" "$fixtures/after.json" .
for columns in 80 60 40; do
  on_terminal $columns "$SLUICE" stats before.json after.json
  fits $columns
  grep -q '^totals .*B-A$' <<<"$output" || fail "$last: the differences are not kept: $output"
done
expect_in output '(left out, for --wide: A; B)'
run "$SLUICE" stats before.json after.json
all_of_it=$output
on_terminal 60 "$SLUICE" stats --wide before.json after.json
[ "$output" = "$all_of_it" ] || fail "$last: not as it is where there is no terminal: $output"

# Help: words go on below the words, as wide as the terminal.
for subcommand in '' run compare bench 'bench list' 'bench run' options stats; do
  run "$SLUICE" $subcommand --help
  fits 80
  for columns in 60 40; do
    on_terminal $columns "$SLUICE" $subcommand --help
    fits $columns
  done
done
on_terminal 200 "$SLUICE" run --help
expect_in output 'Print statistics at exit: text or json (to stderr), text:FILE, json:FILE, prometheus:FILE; %p in FILE is the process id. Only as --stats'
run "$SLUICE" run --help
grep -q '^                          *text:FILE, json:FILE, prometheus:FILE; %p' <<<"$output" || fail "$last: words do not go on below the words: $output"

# How to read it takes a line, unless it is asked for.
run $compare -- true
case "$output" in *quartiles*) fail "a paragraph: $output" ;; esac
expect_in output '1 run each after 0 to warm up; --explain tells what the figures mean.'
run $compare --explain -- true
expect_in output '99 % confidence'
on_terminal 80 $compare --explain -- true
fits 80
expect_in output quartiles

[ -x "$(dirname "$SLUICE")/scenarios/pair" ] || finish
[ "$failures" -eq 0 ] || finish
on_terminal 80 "$SLUICE" bench list
fits 80
bench="$SLUICE bench run pair request --rounds 1 --quiesce 0 --ops 100"
libraries=$("$SLUICE" bench list >/dev/null && echo "--with system,a=$(dirname "$SLUICE")/../lib/libsluice.so,b=$(dirname "$SLUICE")/../lib/libsluice.so,sluice")
on_terminal 60 $bench $libraries --no-latency
fits 60
expect_in output '(left out, for --wide: '
grep -q '^peak RSS, MiB  *system  *sluice$' <<<"$output" || fail "the columns of the baseline and of sluice are not kept: $output"
case "$output" in *'The last column is'*) fail "a paragraph: $output" ;; esac
run $bench --with system,sluice --explain
expect_in output 'The last column is the figure inside scopes'
expect_in output 'is subtracted'
finish
