#!/usr/bin/env bash
# The workflows for GitHub's runners have the stages of scripts/test and the ports of scripts/port, each once: those of a run without
# arguments with each push, the slow ones at night; what they run is there. actionlint checks the rest (tests/dist/workflow.sh).
# workflows_test.sh CHECKOUT
set -euo pipefail
cd "$1"
ci=.github/workflows/ci.yml
nightly=.github/workflows/nightly.yml
fail() {
  printf 'workflows_test.sh: FAILED: %s\n' "$*" >&2
  exit 1
}
# same WHAT WANTED FOUND: lists of words, in one order.
same() { [[ $2 == "$3" ]] || fail "$1"$'\n'"$(diff <(printf '%s\n' "$2") <(printf '%s\n' "$3"))"; }

stages_of() { scripts/test --help | sed -n "/^$1/,/^[^ ]/s/^  \([a-z]*\) .*/\1/p"; }
default=$(stages_of 'Stages of a run without' | grep -vx setup)
slow=$(stages_of Slow,)
[[ $(wc -l <<<"$default") -ge 4 && $(wc -l <<<"$slow") -ge 4 ]] || fail "--help names no stages"

same "$ci has other stages than a run without arguments (<)" "$default" "$(sed -n 's/^ *stage: \[\(.*\)\]$/\1/p' "$ci" | tr -d ' ' | tr , '\n')"
commands=$(sed -n '/^ *command:$/,/^    [a-z]/s/^ *- //p' "$nightly")
wanted=$(
  grep -vx port <<<"$slow" | sed 's|^|scripts/test |' # each port is a job of its own
  scripts/port --list | sed 's|^|scripts/port |'
)
same "$nightly has other commands than the slow stages and ports (<)" "$(sort <<<"$wanted")" "$(sort <<<"$commands")"
grep -qE '^  schedule:$' "$nightly" && grep -qE '^    - cron: "[0-9]+ [0-9]+ \* \* \*"$' "$nightly" || fail "$nightly does not run each night"
grep -qE '^  workflow_dispatch:$' "$nightly" || fail "$nightly cannot be started by hand"

known=$(scripts/test --list)
while read -r _ arguments; do
  for stage in $arguments; do grep -qxF -e "$stage" <<<"$known" || fail "scripts/test has no stage '$stage'"; done
done < <(grep -hE '^ *(- )?(run: |scripts/)' .github/workflows/*.yml | grep -oE 'scripts/test( [a-z]+)+')
mapfile -t scripts < <(grep -hE '^ *(- )?run: |^ *- scripts/' .github/workflows/*.yml | grep -oE '\b(scripts|tests)/[a-z_./-]+' | sort -u)
((${#scripts[@]} >= 4)) || fail "the workflows run no scripts"
for script in "${scripts[@]}"; do [[ -x $script ]] || fail "$script is run, and is not there"; done
echo "workflows_test.sh: passed"
