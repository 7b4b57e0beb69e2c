#!/usr/bin/env bash
# Programs that run with privileges that the caller has not: the loader ignores the preload there, so they are not run.
. "$(dirname "$0")/testing.sh"

[ "$(id -u)" -eq 0 ] || skip 'only root can make a program that is setuid to another user'
findmnt -no OPTIONS -T "$workspace" 2>/dev/null | grep -q nosuid && skip "$workspace is mounted nosuid"
stranger=65534
copy() {
  cp "$(PATH=/usr/bin:/bin type -P true)" "$1"
  chown "$2" "$1"
  chmod "$3" "$1"
}
copy setuid "$stranger:0" 4755
copy setgid "0:$stranger" 2755
copy own 0:0 6755
copy no_group_execute "0:$stranger" 2745

run "$SLUICE" run -- ./setuid
expect_one_line_error 125 './setuid is setuid: the preload cannot work'
run "$SLUICE" run --force -- ./setuid
expect_status 0
run "$SLUICE" run -- ./setgid
expect_one_line_error 125 './setgid is setgid: the preload cannot work'
run "$SLUICE" run -- ./own
expect_status 0
run "$SLUICE" run -- ./no_group_execute
expect_status 0

# On a script the bits mean nothing.
printf '#!/bin/sh\necho ran\n' >script
chown "$stranger" script
chmod 4755 script
run "$SLUICE" run -- ./script
expect_output ran

# File capabilities, seen by a caller who is not root and so gains them.
chmod 755 "$workspace"
copy capable 0:0 755
if setcap cap_net_raw+ep capable 2>/dev/null && setpriv --reuid="$stranger" --clear-groups "$SLUICE" --version >/dev/null 2>&1; then
  run setpriv --reuid="$stranger" --clear-groups "$SLUICE" run -- ./capable
  expect_one_line_error 125 './capable has file capabilities: the preload cannot work'
  run setpriv --reuid="$stranger" --clear-groups --no-new-privs "$SLUICE" run -- ./capable
  expect_status 0
  run "$SLUICE" run -- ./capable
  expect_status 0
fi
finish
