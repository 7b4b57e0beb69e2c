# What the tests of the command share. Each test sources it, calls the expect_… functions and ends with finish.
# SLUICE is the command under test, FIXTURES the folder with sample dumps; the test runs in a folder of its own.
set -u
fixtures=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT
cd "$workspace" || exit 1
unset LD_PRELOAD ${!SLUICE_*}
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

skip() {
  echo "skipped: $*"
  exit 77
}

# run COMMAND...: runs it and keeps $status, $output and $errors.
run() {
  "$@" >"$workspace/.output" 2>"$workspace/.errors"
  status=$?
  output=$(<"$workspace/.output")
  errors=$(<"$workspace/.errors")
  last="$*"
}

expect_status() {
  [ "$status" -eq "$1" ] || fail "$last: exit status $status instead of $1: $output $errors"
}

# expect_output TEXT: exactly this on standard output.
expect_output() {
  [ "$output" = "$1" ] || fail "$last: printed '$output' instead of '$1'"
}

# expect_in WHERE TEXT: the text is part of $output or $errors.
expect_in() {
  case "${!1}" in
    *"$2"*) ;;
    *) fail "$last: $1 lacks '$2': ${!1}" ;;
  esac
}

# expect_one_line_error STATUS TEXT: nothing but one line on standard error, from the command, with the text in it.
expect_one_line_error() {
  expect_status "$1"
  [ -z "$output" ] || fail "$last: printed '$output' beside its error"
  [ "$(wc -l <"$workspace/.errors")" -eq 1 ] || fail "$last: not one line: $errors"
  case "$errors" in
    "sluice: "*) ;;
    *) fail "$last: error is not the command's: $errors" ;;
  esac
  expect_in errors "$2"
}

finish() {
  [ "$failures" -eq 0 ] || exit 1
  echo "passed"
}
