#!/usr/bin/env bash
# Where `sluice run` finds libsluice.so: in the installation that the command lies in, or where --lib says.
. "$(dirname "$0")/testing.sh"

library=$("$SLUICE" run -- printenv LD_PRELOAD)
installation() { # FOLDER
  rm -rf prefix
  mkdir -p prefix/bin "prefix/$1"
  cp "$SLUICE" prefix/bin/sluice
  cp "$library" "prefix/$1/libsluice.so"
}
for folder in lib lib64 "lib/$MULTIARCH"; do
  installation "$folder"
  run prefix/bin/sluice run -- printenv LD_PRELOAD
  expect_output "$workspace/prefix/${folder%/}/libsluice.so"
done
ln -s "$workspace/prefix/bin/sluice" link
run ./link run -- printenv LD_PRELOAD
expect_output "$workspace/prefix/${folder%/}/libsluice.so"

# Packages that only run programs have the libraries by the name that the loader asks for.
mv "prefix/$folder/libsluice.so" "prefix/$folder/libsluice.so.1"
run prefix/bin/sluice run -- printenv LD_PRELOAD
expect_output "$workspace/prefix/$folder/libsluice.so.1"
mkdir -p prefix/lib
cp "$library" prefix/lib/libsluice.so
run prefix/bin/sluice run -- printenv LD_PRELOAD
expect_output "$workspace/prefix/lib/libsluice.so"

run "$SLUICE" run --secure -- printenv LD_PRELOAD
expect_output "${library%libsluice.so}libsluice-secure.so"
run "$SLUICE" compare --runs 2 --with secure -- true
expect_status 0
run prefix/bin/sluice run --secure -- echo ran
expect_one_line_error 125 'no libsluice-secure.so'
run "$SLUICE" run --secure --lib "$library" -- echo ran
expect_status 2

rm -rf prefix/lib
run prefix/bin/sluice run -- echo ran
expect_one_line_error 125 '--lib'
run prefix/bin/sluice run --lib "$library" -- printenv LD_PRELOAD
expect_output "$library"
cp "$library" here.so
run "$SLUICE" run --lib here.so -- printenv LD_PRELOAD
expect_output "$workspace/here.so"
run "$SLUICE" run --lib=here.so -- printenv LD_PRELOAD
expect_output "$workspace/here.so"

run "$SLUICE" run --lib nonexistent.so -- echo ran
expect_one_line_error 125 'nonexistent.so: no such library'
run "$SLUICE" run --lib "$workspace" -- echo ran
expect_one_line_error 125 'no such library'
echo 'no library' >text.so
run "$SLUICE" run --lib text.so -- echo ran
expect_one_line_error 125 'text.so is not a shared library'
cp here.so 'with space.so'
run "$SLUICE" run --lib 'with space.so' -- echo ran
expect_one_line_error 125 'no path with a colon or a space'
finish
