#!/usr/bin/env bash
# `sluice profile --pprof` as pprof itself reads it: PPROF, pprof on the PATH, or that of Go.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
is_pprof() { "$1" -h 2>&1 | grep -q sample_index; }
pprof=${PPROF:-$(type -P pprof || true)}
if [ -z "$pprof" ] || ! is_pprof "$pprof"; then
  pprof=$(go tool -n pprof 2>/dev/null)  # Go builds it at the first use, and keeps it
  [ -x "$pprof" ] && is_pprof "$pprof" || skip 'no pprof (go install github.com/google/pprof@latest)'
fi
export PPROF_TMPDIR=$workspace HOME=$workspace
python3 -B "$fixtures/profile_writer.py" demo.pb || fail 'the profile of the test'

shows() { # INDEX OPTIONS... -- TEXT...
  local index=$1
  shift
  local options=()
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  run "$pprof" -symbolize=none -sample_index="$index" "${options[@]}" out.pb.gz
  expect_status 0
  for text in "$@"; do expect_in output "$text"; done
}
run "$SLUICE" profile demo.pb --pprof out.pb.gz
expect_status 0
for index in inuse_space inuse_objects alloc_space alloc_objects peak_space short_lived_objects; do
  shows $index -top -- "Type: $index" 'Duration: 2.50s' 'operator new'
done
run "$pprof" -symbolize=none -top out.pb.gz
expect_in output 'Type: inuse_space'  # unless another value is asked for
shows alloc_space -traces -- 'thread:  worker' 'bytes:  1kB' 'xmalloc' 'cache_put'
shows alloc_space -raw -- 'table.cpp:31' 'sluice.pid=4711' 'PeriodType: space bytes' 'Period: 524288'
shows inuse_space -tags -- 'thread' 'worker'

# What pprof writes anew is read again, and so is the library's own form, which is not compressed.
run "$pprof" -symbolize=none -proto -output=again.pb.gz out.pb.gz
expect_status 0
"$SLUICE" profile out.pb.gz >first.txt
"$SLUICE" profile again.pb.gz >second.txt
cmp first.txt second.txt || fail "pprof's copy differs: $(diff first.txt second.txt)"
run "$pprof" -symbolize=none -sample_index=alloc_space -top demo.pb
expect_in output 'Type: alloc_space'
finish
