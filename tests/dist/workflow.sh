#!/usr/bin/env bash
# The workflow for GitHub's runners: actionlint finds no fault, and what it runs is there. It has run nowhere: no runner is at hand.
# Needs go, and the Go module proxy or what go has of it.
source "$(dirname "$0")/testing.sh"
root=$tests/..
workflow=$root/.github/workflows/ci.yml

mapfile -t scripts < <(grep -oE '\b(scripts|tests)/[a-z_./-]+' <<<"$(grep -F 'run: ' "$workflow")" | sort -u)
((${#scripts[@]} >= 2)) || fail "no script is run"
for script in "${scripts[@]}"; do [[ -x $root/$script ]] || fail "$script is run, and is not there"; done
read -ra stages <<<"$(sed -n 's/^ *stage: \[\(.*\)\]$/\1/p' "$workflow" | tr -d ,)"
wanted=$("$root/scripts/test" --help | sed -n '/^Stages:/,/^Not in/s/^  \([a-z]*\) .*/\1/p' | grep -vx setup)
[[ $(printf '%s\n' "${stages[@]}") == "$wanted" ]] || fail "the stages are not those that scripts/test runs: $wanted"

command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "no go here"
GOBIN=$workspace/bin timeout 600 go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 >"$workspace/log" 2>&1 ||
  skip "go makes no actionlint: $(tail -n 1 "$workspace/log")"
printed=$("$workspace/bin/actionlint" -no-color "$workflow" 2>&1) || fail "actionlint: $printed"
[[ -z $printed ]] || fail "actionlint: $printed"
sed 's/matrix\.stage/matrix.phase/' "$workflow" >"$workspace/wrong.yml"
! "$workspace/bin/actionlint" "$workspace/wrong.yml" >/dev/null || fail "a wrong name is not seen: this test could not fail"
echo "$0: passed"
