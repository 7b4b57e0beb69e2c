#!/usr/bin/env bash
# `sluice run --only NAME`: of a script and the programs that it starts, those that were named print statistics.
. "$(dirname "$0")/testing.sh"

cat >script.sh <<'END'
#!/bin/bash
printf '3\n1\n2\n' | sort | cat | tail -1
(exec -a another_name tr a b) </dev/null
ls . >/dev/null
END
chmod +x script.sh

# printed_by: the names of the programs whose dumps are in $errors.
printed_by() { sed -n 's/^sluice [0-9.]*: pid [0-9]*, //p' <<<"$errors" | sort | tr '\n' ' '; }

# only NAMES EXPECTED: what prints under --only NAMES.
only() {
  run "$SLUICE" run --only "$1" -- ./script.sh
  expect_status 0
  expect_output 3
  [ "$(printed_by)" = "$2" ] || fail "$last: dumps of '$(printed_by)' instead of '$2'"
}

run "$SLUICE" run --stats -- ./script.sh
[ "$(printed_by | wc -w)" -ge 5 ] || fail "without --only: $errors"
only sort 'sort '
only sort,ls 'ls sort '
only /usr/bin/sort,, 'sort '
only script.sh 'bash '
only another_name 'another_name '
only tr 'another_name '
only nothing ''

run "$SLUICE" run --only sort --stats=json:dump.%p.json -- ./script.sh
expect_status 0
[ "$errors" = '' ] || fail "$last: $errors"
set -- dump.*.json
[ $# -eq 1 ] && grep -q '"program": "sort"' "$1" || fail "$last: wrote $*"

for variable in SLUICE_STATS=json SLUICE_OPTIONS=CACHE=16K,STATS=json; do
  run env "$variable" "$SLUICE" run --only tail -- ./script.sh
  expect_in errors '"program": "tail"'
  [ "$(grep -c '"schema"' <<<"$errors")" -eq 1 ] || fail "$last: $errors"
done

run "$SLUICE" run --only '' -- true
expect_one_line_error 2 --only
finish
