#!/usr/bin/env bash
# The workflows for GitHub's runners: actionlint finds no fault. They have run nowhere: no runner is at hand. What they run is compared
# with scripts/test by tests/stages/workflows_test.sh. Needs go, and the Go module proxy or what go has of it.
source "$(dirname "$0")/testing.sh"
workflows=("$tests"/../.github/workflows/*.yml)
((${#workflows[@]} >= 2)) || fail "workflows are missing"

command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "no go here"
GOBIN=$workspace/bin timeout 600 go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 >"$workspace/log" 2>&1 ||
  skip "go makes no actionlint: $(tail -n 1 "$workspace/log")"
for workflow in "${workflows[@]}"; do
  printed=$("$workspace/bin/actionlint" -no-color "$workflow" 2>&1) || fail "actionlint: $printed"
  [[ -z $printed ]] || fail "actionlint: $printed"
  sed 's/{{ matrix\.[a-z]*/&_of_another_name/' "$workflow" >"$workspace/wrong.yml"
  ! "$workspace/bin/actionlint" "$workspace/wrong.yml" >/dev/null || fail "a wrong name in $workflow is not seen: this test could not fail"
done
echo "$0: passed"
