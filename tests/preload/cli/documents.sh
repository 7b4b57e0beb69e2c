#!/usr/bin/env bash
# Help, manual page and completion tell of the same options, and completion completes.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'

for shell in bash zsh fish; do
  "$SLUICE" document $shell >$shell.txt || fail "no completion for $shell"
done
# Every option of every subcommand, by its help, is in the manual page's section and in each completion.
python3 - "$SLUICE" "$MANUAL" <<'END_OF_SCRIPT' || fail 'the documents differ'
import re, subprocess, sys
command, manual = sys.argv[1:]
page = open(manual).read().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
bash, zsh, fish = (open(f"{shell}.txt").read() for shell in ("bash", "zsh", "fish"))
wrong = []
for subcommand in ("run", "compare", "bench", "profile", "leaks", "options", "stats", "docs"):
    text = subprocess.run([command, subcommand, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M)
    assert len(options) >= 2, text
    if subcommand in ("run", "compare", "bench", "profile", "leaks"):
        section = page.partition(f".SS sluice {subcommand}\n")[2].partition("\n.SS ")[0]
        entries = set(re.findall(r"--[\w-]+", "\n".join(re.findall(r"^\.TP\n(.*)", section, re.M))))
        if entries != set(options):
            wrong.append(f"manual page, {subcommand}: {entries ^ set(options)}")
    begin = bash.index(f"\n    {subcommand})\n")
    words = set(re.findall(r"--[\w-]+", re.search(r"options='(.*)'", bash[begin:]).group(1)))
    if words != set(options):
        wrong.append(f"bash, {subcommand}: {words ^ set(options)}")
    begin = zsh.index(f"\n    {subcommand})\n")
    words = set(re.findall(r"'\*(--[\w-]+)\[", zsh[begin:zsh.index(";;", begin)]))
    if words != set(options):
        wrong.append(f"zsh, {subcommand}: {words ^ set(options)}")
    words = {"--" + name for name in re.findall(rf"_from {subcommand}'.* -l ([\w-]+)", fish)}
    if words != set(options):
        wrong.append(f"fish, {subcommand}: {words ^ set(options)}")
if "secure" not in page.partition("--with")[2].partition(".TP")[0]:
    wrong.append("manual page: --with does not tell of secure")
sys.exit("\n".join(wrong) or 0)
END_OF_SCRIPT

# completes EXPECTED WORD...: what bash offers for the last word has these among it.
export PATH=$(dirname "$SLUICE"):$PATH
completes() {
  local expected=$1
  shift
  output=$(bash -c '. ./bash.txt
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _sluice
    printf " %s" "${COMPREPLY[@]}"' bash sluice "$@" 2>&1)
  last="completion of '$*'"
  for word in $expected; do expect_in output " $word"; done
}
completes 'run compare bench profile leaks options stats' ''
completes 'compare' comp
completes '--runs --with --explain' compare --
completes '--runs' compare --ru
completes 'mimalloc' compare --with mi
completes 'system,sluice,mimalloc' compare --with system,sluice,mi
completes '1 2 4 8 16 32' bench --threads ''
completes '1,2,16' bench --threads 1,2,1
completes 'PURGE_DELAY=' run --option PU
completes 'true' run --stats -- tru
completes 'true' compare --runs 3 tru
completes 'bash.txt' stats bas
completes 'bash.txt' compare --json bas
completes 'bash.txt' profile bas
completes 'bash.txt' profile --diff bas
completes 'list run' bench ''
completes '--markdown' options --m
completes '--path' docs --
if [ -x "$(dirname "$SLUICE")/scenarios/pair" ]; then completes 'pair producer_consumer' bench run p; fi
[ "$output" != ' ' ] || fail 'nothing is completed'

if command -v zsh >/dev/null; then zsh -n zsh.txt || fail 'the completion for zsh'; fi
if command -v fish >/dev/null; then fish -n fish.txt || fail 'the completion for fish'; fi
finish
