#!/usr/bin/env bash
# `sluice compare` and signals: keys on a terminal, the end of the terminal, its own death and that of its launcher, and
# what it inherits. Each time no process and no file is left.
. "$(dirname "$0")/testing.sh"
python=$(python3 -c 'import sys; print(sys.executable)') || skip 'no python3'
export TMPDIR=$workspace/temporary
mkdir "$TMPDIR"

# The program says who it is, and waits; it leaves its group, so that a signal for the group does not reach all of it.
cat >program <<'END_OF_PROGRAM'
setsid sh -c 'echo $$ >child.new; mv child.new child; exec sleep 4731' &
while ! test -e child; do :; done
echo $$ $PPID >program.new
mv program.new program.pids
exec sleep 4731
END_OF_PROGRAM
# signals.py HOW: starts the comparison on a terminal of its own, and does something to it once the program runs.
cat >signals.py <<'END_OF_SCRIPT'
import os, pty, signal, sys
how, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
while not os.path.exists("program.pids"):
    pass
program, launcher = map(int, open("program.pids").read().split())
if how == "key":
    os.write(terminal, b"\x03")
elif how == "key twice":
    os.write(terminal, b"\x03\x03")
elif how == "launcher":
    os.kill(launcher, signal.SIGKILL)
else:
    os.kill(pid, getattr(signal, how))
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
_, status = os.waitpid(pid, 0)
def is_there(process):
    try:
        return open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
# After its own death, sluice-launch has to find that out.
while how == "SIGKILL" and (is_there(program) or is_there(int(open("child").read()))):
    pass
left = [process for process in (program, int(open("child").read())) if is_there(process)]
for process in left:
    os.kill(process, signal.SIGKILL)
print("left" if left else "nothing left", os.waitstatus_to_exitcode(status))
END_OF_SCRIPT
for how in key 'key twice' SIGINT SIGTERM SIGHUP launcher; do
  rm -f program.pids child
  echo before >c.json
  run timeout 60 "$python" signals.py "$how" "$SLUICE" compare --runs 1 --warmup 0 --with system --json c.json --html c.html -- sh program
  case $how in
    SIGTERM) code=143 ;;
    SIGHUP) code=129 ;;
    launcher) code=1 ;;
    *) code=130 ;;
  esac
  expect_output "nothing left $code"
  [ -z "$(ls "$TMPDIR")" ] || fail "$how: a temporary folder was left"
  # Nothing was measured: no report, nor the beginning of one, and one that was there before stays.
  if [ "$how" != launcher ]; then
    [ "$(cat c.json*)" = before ] || fail "$how: a report of nothing: $(ls)"
    ls | grep -q '^c\.html' && fail "$how: a page of nothing"
  fi
  rm -f c.json c.html
done
rm -f program.pids child
run timeout 60 "$python" signals.py SIGKILL "$SLUICE" compare --runs 1 --warmup 0 --with system -- sh program
expect_output 'nothing left -9'
rm -rf "$TMPDIR"/*

# A child that the shell had before it became the comparison is not among what is ended.
rm -f program.pids child
cat >kill-launcher <<'END_OF_PROGRAM'
kill -KILL $PPID
exec sleep 4733
END_OF_PROGRAM
(sleep 4734 & echo $! >bystander; exec "$SLUICE" compare --runs 1 --warmup 0 --with system -- sh kill-launcher) >out 2>&1
kill "$(cat bystander)" || fail 'a process of somebody else was ended'
grep -q 'sluice-launch was ended from outside' out || fail "the launcher was ended: $(cat out)"

# nohup holds.
cat >nohup.sh <<'END_OF_PROGRAM'
kill -HUP "$(cat pid)"
END_OF_PROGRAM
(trap '' HUP && echo $BASHPID >pid && exec "$SLUICE" compare --runs 1 --warmup 0 --with system -- sh nohup.sh) >out 2>&1
code=$?
[ $code -eq 0 ] || fail "under nohup: exit status $code: $(cat out)"

# Signals that are ignored or blocked where sluice was started change nothing, here and in the program.
cat >inherit.py <<'END_OF_SCRIPT'
import os, signal, sys
for each in signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE:
    signal.signal(each, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
os.execv(sys.argv[1], sys.argv[1:])
END_OF_SCRIPT
run "$python" inherit.py "$SLUICE" compare --runs 1 --warmup 0 --with system,sluice --json c.json -- sh -c 'exit 3'
expect_status 0
expect_in output 'exit status 3'
grep -q '"wait_status": 768' c.json || fail 'the exit status is lost when SIGCHLD is ignored'
# (From signal 32 on they are the C library's.)
run "$python" inherit.py "$SLUICE" compare --runs 1 --warmup 0 --with system -- \
  sh -c 'test "$(grep -cE "Sig(Blk|Ign):.[0-9a-f]{8}[08]0000000" /proc/self/status)" -eq 2'
expect_status 0
case "$output" in *'exit status'*) fail "the program inherits blocked or ignored signals" ;; esac
run timeout 60 "$python" inherit.py "$SLUICE" compare --runs 1 --warmup 0 --with system --load true -- sleep 4732
expect_status 0

# The program has no terminal to wait at.
run "$SLUICE" compare --runs 1 --warmup 0 --with system -- sh -c '! (: </dev/tty)'
expect_status 0
case "$output" in *'exit status'*) fail "the program has a terminal: $output" ;; esac

# The first process of a container, whose launcher's parent is process 1.
if unshare --fork --pid --mount-proc true 2>/dev/null; then
  run unshare --fork --pid --mount-proc "$SLUICE" compare --runs 1 --warmup 0 --with system -- true
  expect_status 0
fi
# Who reads the tables may be gone; the files are written.
exec 5> >(:)
wait $!
"$SLUICE" compare --runs 1 --warmup 0 --with system --json piped.json -- true >&5 2>piped.errors
code=$?
exec 5>&-
[ $code -eq 1 ] || fail "a closed pipe: exit status $code"
grep -q '"schema"' piped.json || fail 'no JSON file when standard output is a closed pipe'
[ "$(wc -l <piped.errors)" -eq 1 ] || fail "a closed pipe: $(cat piped.errors)"
finish
