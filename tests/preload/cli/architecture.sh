#!/usr/bin/env bash
# Programs for another architecture: one line, exit status 125. They are copies of a program with other header bytes.
. "$(dirname "$0")/testing.sh"

true_path=$(PATH=/usr/bin:/bin type -P true)
patched() { # FILE OFFSET BYTE...
  local file=$1 offset=$2
  shift 2
  cp "$true_path" "$file"
  printf "$(printf '\\x%s' "$@")" | dd of="$file" bs=1 seek="$offset" conv=notrunc status=none
  chmod 755 "$file"
}
patched narrow 4 01
patched swapped 5 02
patched s390 18 16 00

run "$SLUICE" run -- ./narrow
expect_one_line_error 125 './narrow is 32-bit '
run "$SLUICE" run -- ./s390
expect_one_line_error 125 's390x and libsluice.so is 64-bit'
run "$SLUICE" run -- ./swapped
expect_one_line_error 125 'the preload cannot work'

# Of macOS: the header of a program without load commands.
printf '\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >mac
chmod +x mac
run "$SLUICE" run -- ./mac
expect_one_line_error 125 './mac is for macOS (arm64): the preload cannot work'

# Half a header, or none: the kernel's answer passes through.
head -c 12 "$true_path" >stump
head -c 200 "$true_path" >half
: >empty
chmod +x stump half empty
run "$SLUICE" run -- ./empty
expect_status 0
for file in stump half; do
  run "$SLUICE" run -- "./$file"
  [ "$status" -ne 0 ] || fail "$file: was run"
done
finish
