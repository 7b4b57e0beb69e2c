#!/usr/bin/env bash
# What scripts/peers has built is found beside the build tree, takes the name of its kind, and is served and named with
# its version. Copies of libsluice.so stand for the other allocators here: no network.
. "$(dirname "$0")/testing.sh"

library=$("$SLUICE" run -- printenv LD_PRELOAD)
mkdir -p build/tree/bin build/tree/lib build/peers
touch build/tree/CMakeCache.txt
cp "$SLUICE" build/tree/bin/sluice
cp -r "$(dirname "$library")/sluice" build/tree/lib/
cp "$library" build/tree/lib/
sluice=build/tree/bin/sluice

run "$sluice" compare --runs 1 --warmup 0 --with snmalloc-not-there,system -- true
expect_one_line_error 2 "unknown allocator 'snmalloc-not-there'"

cp "$library" build/peers/libmimalloc.so
cp "$library" build/peers/libsnmalloc.so
cp "$library" build/peers/librpmalloc.so
printf 'mimalloc 99.1\nsnmalloc 98.2 (a commit)\ntcmalloc 97 has no library\n' >build/peers/versions
run "$sluice" compare --runs 1 --warmup 0 --with mimalloc,snmalloc --json result.json -- true
expect_status 0
expect_in output 'mimalloc 99.1, snmalloc 98.2 (a commit)'
[[ $(python3 -c '
import json
for each in json.load(open("result.json"))["allocators"]:
    print(each["name"], each["version"], each["library"].split("build/")[1])') == \
  $'mimalloc 99.1 peers/libmimalloc.so\nsnmalloc 98.2 (a commit) peers/libsnmalloc.so' ]] || fail 'not those of build/peers'

# One without a version was not built to its end; what a distribution has installed is compared when it is named.
run "$sluice" compare --runs 1 --warmup 0 --json result.json -- true
expect_status 0
python3 - <<'P' || fail 'not the newest of each kind'
import json
names = [each["name"] for each in json.load(open("result.json"))["allocators"]]
assert names.count("mimalloc") == 1 and "snmalloc" in names and not [n for n in names if n.startswith("installed-")], names
found = {each["name"]: each["library"] for each in json.load(open("result.json"))["allocators"]}
assert "peers" not in found.get("rpmalloc", "") and "peers" not in found.get("tcmalloc", ""), found
P

# An installation does not look beside itself.
rm build/tree/CMakeCache.txt
run "$sluice" compare --runs 1 --warmup 0 --with snmalloc -- true
expect_one_line_error 2 "unknown allocator 'snmalloc'"
mkdir -p build/tree/lib/sluice/peers
mv build/peers/* build/tree/lib/sluice/peers/
run "$sluice" compare --runs 1 --warmup 0 --with snmalloc -- true
expect_status 0
finish
