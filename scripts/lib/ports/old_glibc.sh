# libsluice.so and libsluice-secure.so, as the preset release builds them, on an older glibc than the one that they were
# linked with: Debian 11's, before 2.34, with libdl and libpthread of their own. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/debian.sh"

root=$build/root
libraries=$root/lib/x86_64-linux-gnu
packages=(libc6 libc6-dev bash python3 sqlite3)

fetch_debian_11() {
  [[ $(cat "$build/fetched" 2>/dev/null) == "${packages[*]}" ]] && return
  from_debian bullseye deb "${packages[@]}"
  rm -rf "$root"
  mkdir -p "$root"
  local deb
  for deb in "$build"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
  rm -rf "$build/apt"
  # An absolute link would lead out of the folder.
  ln -sf ../lib/x86_64-linux-gnu/ld-2.31.so "$root/lib64/ld-linux-x86-64.so.2"
  printf '%s' "${packages[*]}" >"$build/fetched"
}

build_port() {
  [[ $(uname -m) == x86_64 ]] || fail "for x86-64 alone"
  configure release
  build release sluice_preload sluice_secure_preload
  built=$repo_root/build/release/lib/libsluice.so
}

# compile NAME ARGUMENT...: the program of the tests, linked with that glibc.
compile() {
  gcc --sysroot="$root" -B"$root/usr/lib/x86_64-linux-gnu" -L"$root/usr/lib/x86_64-linux-gnu" \
    -isystem "$root/usr/include/x86_64-linux-gnu" -O1 -fno-builtin -std=gnu11 -Wall -Wextra -Werror \
    "$repo_root/tests/ports/old_glibc.c" -o "$build/$1" "${@:2}" || fail "the program of the tests does not compile"
}

# on_old_glibc VARIABLE LIBRARY PROGRAM ARGUMENT...
on_old_glibc() {
  timeout 120 env -i PATH=/usr/bin:/bin PYTHONHOME="$root/usr" PYTHONDONTWRITEBYTECODE=1 "$1" LD_PRELOAD="$2" \
    "$libraries/ld-2.31.so" --library-path "$libraries:$root/usr/lib/x86_64-linux-gnu" "${@:3}"
}

# expect VARIABLE LIBRARY OUTPUT PROGRAM ARGUMENT...: all that the program prints is this, and its status is 0.
expect() {
  local output status=0
  output=$(on_old_glibc "$1" "$2" "${@:4}" 2>&1) || status=$?
  [[ $status -eq 0 && $output == "$3" ]] || fail "$(basename "$2"), $1, $4: status $status: $output"
}

test_port() {
  fetch_debian_11
  compile plain
  compile late -DUSES_DL "$libraries/libdl.so.2"
  compile threads -DUSES_DL -DUSES_THREADS "$libraries/libdl.so.2" "$libraries/libpthread.so.0"
  local library variable program
  for library in "${built%.so}"{,-secure}.so; do
    say "$(basename "$library") on glibc 2.31"
    for program in plain late threads; do
      for variable in A=1 SLUICE_GUARD_RATE=3 SLUICE_BACKGROUND=1 SLUICE_STATS=json:"$build/statistics"; do
        expect "$variable" "$library" passed "$build/$program"
      done
      # 200 threads have come and gone, few at once.
      local caches
      caches=$(sed -n 's/.*"threads": {.*"caches": \([0-9]*\).*/\1/p' "$build/statistics")
      [[ -n $caches && $caches -le 6 ]] || fail "$program: the heap is not told of the ends of threads: '$caches' caches"
    done
    expect A=1 "$library" 6 "$root/usr/bin/sqlite3" :memory: \
      'create table t(a); insert into t values (1), (2), (3); select sum(a) from t;'
    expect A=1 "$library" "16 2" "$root/usr/bin/python3.9" -S -c '
import ctypes, subprocess, threading
results = []
threads = [threading.Thread(target=lambda: results.append(len([str(i) * 50 for i in range(20000)]))) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(results), subprocess.run(["/bin/sh", "-c", "exit 2"]).returncode)'
    expect A=1 "$library" "1 2 3" "$root/bin/bash" -c 'echo $(for i in 1 2 3; do (echo $i); done)'
  done
  expect SLUICE_PROFILE="$build/profile.pb" "$built" passed "$build/threads"
  [[ -s $build/profile.pb ]] || fail "no profile was written"
  where="on the glibc and programs of Debian 11"
}
