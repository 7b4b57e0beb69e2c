# libsluice.so and libsluice-secure.so, as the preset release builds them, on newer glibcs than the one that they were linked
# with: Debian 13's (linux-new-glibc) or that of Debian's unstable (linux-newest-glibc, which moves on). A root of that release's
# packages serves the preload tests of the release build and real programs. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/debian.sh"

root=$build/root
packages=(libc6 libc6-dev libstdc++6 bash coreutils dash diffutils findutils gawk grep gzip sed tar procps util-linux passwd base-files
  python3 sqlite3 perl git g++ xz-utils zstd lua5.4 vim-tiny openssl redis-server redis-tools)
real_programs=(bash coreutils git perl perl_threads python3 g++ sqlite3 lua openssl xz zstd tar vim redis)
tests=(contract aligned usable_size introspection operator_new foreign threads fork signals sandbox hostile memory_return own_thread
  names promised_calls children fiber sized_free small_stack scope scope_escape scope_flow scope_signal frame frame_thread)
# What is not the secure library's (tests/preload/CMakeLists.txt).
not_secure=' names promised_calls children fiber sized_free small_stack scope scope_escape scope_flow scope_signal '

fetch_root() {
  local release
  case $port in
    linux-new-glibc) release=trixie ;;
    linux-newest-glibc) release=sid ;;
  esac
  [[ $(cat "$build/fetched" 2>/dev/null) == "$release ${packages[*]}" ]] && return
  from_debian "$release" deb "${packages[@]}"
  rm -rf "$root"
  mkdir -p "$root"/{proc,dev,tmp,root,usr/{bin,sbin,lib,lib64}}
  local deb
  for deb in bin sbin lib lib64; do ln -s "usr/$deb" "$root/$deb"; done
  for deb in "$build"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root" || fail "$deb cannot be unpacked"; done
  rm -rf "$build/apt"
  # What their installation would have made.
  ln -sf dash "$root/bin/sh"
  ln -sf gawk "$root/bin/awk"
  mkdir -p "$root/etc"
  printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf '%s' "$release ${packages[*]}" >"$build/fetched"
}

build_port() {
  [[ $(uname -m) == x86_64 ]] || fail "for x86-64 alone"
  configure release -DSLUICE_TESTS=ON
  build release sluice_preload sluice_secure_preload preload_tests
  built=$repo_root/build/release/lib/libsluice.so
}

# in_root COMMAND...: there, with this repository at its own path. Who is not root is root in a namespace.
as_root=()
((EUID == 0)) || as_root=(--map-root-user)
in_root() {
  # shellcheck disable=SC2016 # the inner shell's
  timeout 300 unshare "${as_root[@]}" --mount --pid --fork --kill-child env -i PATH=/usr/sbin:/usr/bin HOME=/root bash -c '
    set -e
    mount --rbind /dev "$0/dev"
    mount -t proc proc "$0/proc"
    mount -t tmpfs -o size=2g tmpfs "$0/tmp"
    mkdir -p "$0$1"
    mount --bind "$1" "$0$1"
    exec chroot "$0" env -C "$@"' "$root" "$repo_root" "$@" </dev/null
}

# passes NAME COMMAND...: what it says goes to NAME's log, and is shown where it fails.
failed=()
passes() {
  local name=$1 status=0
  shift
  in_root "$@" >"$build/$name.log" 2>&1 || status=$?
  # A real program that is not there, or a test that ran nothing, is a failure of this port.
  if ((status == 0)) && grep -qE ': same output in |\[  PASSED  \] [1-9]|^passed$' "$build/$name.log"; then return; fi
  say "$name failed with status $status:"
  tail -20 "$build/$name.log"
  failed+=("$name")
}

test_port() {
  fetch_root
  in_root true || fail "no root of another release can be entered here (namespaces and mounts)"
  local glibc library name variables tests_folder=$repo_root/build/release/bin/tests
  glibc=$(in_root python3 -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION"))')
  for library in "${built%.so}"{,-secure}.so; do
    say "$(basename "$library") on $glibc"
    python3 -B "$repo_root/tests/preload/exports_test.py" libsluice="$library" symbols="$repo_root/preload/symbols.def" \
      libc="$root/usr/lib/x86_64-linux-gnu/libc.so.6" >"$build/exports.log" 2>&1 || { cat "$build/exports.log" && failed+=(exports); }
    in_root gcc -O1 -fno-builtin -std=gnu11 -Wall -Wextra -Werror tests/ports/new_glibc.c -o "build/port/$port/new_glibc" ||
      fail "the program of the tests does not compile there"
    passes "new_glibc.$(basename "$library")" env LD_PRELOAD="$library" "$build/new_glibc"
    for name in "${tests[@]}"; do
      [[ $library != *-secure.so || $not_secure != *" $name "* ]] || continue
      variables=()
      case $name in  # as in tests/preload/CMakeLists.txt
        hostile) variables=(SLUICE_RETAIN=16M) ;;
        memory_return) variables=(SLUICE_PURGE_DELAY=0) ;;
        own_thread)
          variables=(SLUICE_PURGE_DELAY=20 SLUICE_BACKGROUND=1)
          ((EUID == 0)) || variables+=(GTEST_FILTER=-OwnThread.GivesUpRightsWithTheProgram)
          ;;
      esac
      case $name,$library in
        foreign,*-secure.so) variables+=(SLUICE_ABORT_ON_CORRUPTION=0) ;;
        operator_new,*-secure.so) variables+=('GTEST_FILTER=-SizedDelete.*') ;;
      esac
      passes "$name.$(basename "$library")" env "${variables[@]}" LD_PRELOAD="$library" "$tests_folder/${name}_test"
    done
    for name in "${real_programs[@]}"; do
      variables=()
      # From version 8 it takes blocks from jemalloc by names that only that has, and asks malloc_usable_size about them.
      [[ $name,$library != redis,*-secure.so ]] || variables=(SLUICE_ABORT_ON_CORRUPTION=0)
      passes "real.$name.$(basename "$library")" tests/preload/real_program.sh "$name" "$library" "${variables[@]}"
    done
  done
  ((${#failed[@]} == 0)) || fail "failed on $glibc: ${failed[*]}"
  where="on $glibc and programs of that release"
}
