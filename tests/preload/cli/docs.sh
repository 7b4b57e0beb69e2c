#!/usr/bin/env bash
# sluice docs opens the site that is installed with the command, says where it lies, and says what is missing.
. "$(dirname "$0")/testing.sh"

# An installation, and a folder of programs in which only what a test puts there is found.
mkdir -p prefix/bin prefix/share/doc/sluice/html programs
cp "$SLUICE" prefix/bin/sluice
page=$workspace/prefix/share/doc/sluice/html/index.html
docs() { run env PATH="$workspace/programs" "$workspace/prefix/bin/sluice" docs "$@"; }
opener() { printf '#!/bin/sh\n%s\n' "$1" >programs/xdg-open && chmod +x programs/xdg-open; }

docs --path
expect_one_line_error 1 "there is no $page"
expect_in errors scripts/site
docs
expect_one_line_error 1 "there is no $page"

echo '<title>Sluice</title>' >"$page"
docs --path
expect_status 0
expect_output "$page"
[ -z "$errors" ] || fail "$last: $errors"
docs
expect_one_line_error 1 "no xdg-open"
expect_in errors "$page"

opener 'echo "opened $# $1"'
docs
expect_status 0
expect_output "opened 1 $page"
opener 'exit 3'
docs
expect_one_line_error 1 'exit status 3'
expect_in errors "$page"
opener 'kill -9 $$'
docs
expect_one_line_error 1 'exit status 137'
printf '\1\2' >programs/xdg-open
docs
expect_one_line_error 1 "$page"
mkdir blank\ prefix && cp -r prefix/. blank\ prefix
opener 'echo "opened $# $1"'
run env PATH="$workspace/programs" "$workspace/blank prefix/bin/sluice" docs
expect_output "opened 1 $workspace/blank prefix/share/doc/sluice/html/index.html"

# In a build tree it is the site that scripts/site made there.
mkdir -p build/release/bin build/site
cp "$SLUICE" build/release/bin/sluice
touch build/release/CMakeCache.txt
run build/release/bin/sluice docs --path
expect_one_line_error 1 "there is no $workspace/build/site/index.html"
cp "$page" build/site
run build/release/bin/sluice docs --path
expect_output "$workspace/build/site/index.html"

if [ -w /dev/full ]; then
  run bash -c 'exec prefix/bin/sluice docs --path >/dev/full'
  expect_one_line_error 1 'cannot write to standard output'
fi
finish
