#!/usr/bin/env bash
# How `sluice run` finds a program, and what it says of one that cannot be started.
. "$(dirname "$0")/testing.sh"

mkdir bin other
printf '#!/bin/sh\necho script "$@"\n' >bin/script
printf 'echo no interpreter line\n' >bin/plain
printf '#! %s/bin/script  one argument \n' "$workspace" >bin/nested
printf '#!/nonexistent/interpreter\n' >bin/orphan
printf '#!/bin/sh' >bin/unfinished
chmod +x bin/*
echo 'not to be executed' >other/script
echo 'not to be executed' >other/forbidden

run "$SLUICE" run -- nonexistent-program
expect_one_line_error 127 'nonexistent-program: not found'
run "$SLUICE" run -- ./nonexistent
expect_one_line_error 127 './nonexistent: not found'
run "$SLUICE" run -- ''
expect_one_line_error 127 'not found'
run "$SLUICE" run -- -x
expect_one_line_error 127 '-x: not found'
run "$SLUICE" run -- other/forbidden
expect_one_line_error 126 'other/forbidden: Permission denied'
run "$SLUICE" run -- "$workspace"
expect_one_line_error 126 'directory'
run "$SLUICE" run -- bin/orphan
expect_one_line_error 126 '/nonexistent/interpreter'

run "$SLUICE" run -- bin/script a b
expect_output 'script a b'
run "$SLUICE" run -- bin/nested a
expect_output 'script one argument bin/nested a'
run "$SLUICE" run -- bin/plain
expect_output 'no interpreter line'
run "$SLUICE" run -- bin/unfinished
expect_status 0

search() { run env PATH="$1" "$SLUICE" run -- "$2"; }
search "/nonexistent:$workspace/other:$workspace/bin:/bin" script
expect_output 'script'
search "$workspace/other:/bin" forbidden
expect_one_line_error 126 'forbidden: Permission denied'
search "$workspace/other:/bin" nested
expect_one_line_error 127 'nested: not found'
cd bin || exit 1
search ':/bin' script
expect_output 'script'
search '/nonexistent' script
expect_one_line_error 127 'script: not found'
run env -u PATH "$SLUICE" run -- sh -c 'echo default path'
expect_output 'default path'
finish
