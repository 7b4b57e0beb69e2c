# The preset aarch64: both libraries and their tests by Debian's cross compiler, executed by qemu-user. Sourced by scripts/port.

sysroot=/usr/aarch64-linux-gnu
# What qemu-user carries: where threads fork it stops by assertions of its own, and many threads take it minutes.
unit=(heap region thread_cache)
# On pages of 16 and 64 KiB, pretended by tests/pages.
unit_on_larger_pages=(region vacant thread_cache)
preload_on_larger_pages=(contract aligned usable_size)
preload=(contract aligned usable_size operator_new signals sized_free)

build_port() {
  command -v aarch64-linux-gnu-g++ >/dev/null || fail "no cross compiler (Debian: g++-aarch64-linux-gnu)"
  command -v qemu-aarch64 >/dev/null || install_qemu
  configure aarch64 -DSLUICE_TESTS=ON
  build aarch64 sluice_preload sluice_secure_preload sluice_static larger_pages vacant_test "${unit[@]/%/_test}" "${preload[@]/%/_test}"
  built=$repo_root/build/aarch64/lib/libsluice.so
}

install_qemu() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  say "installing qemu-user"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-user </dev/null ||
    fail "qemu-user could not be installed"
}

# execute NAME [EMULATOR'S ARGUMENT...]: what the tests of the program say goes to NAME's log, and is shown where they fail.
execute() {
  say "executing $1"
  timeout 600 qemu-aarch64 -L "$sysroot" "${@:2}" >"$build/${1// /-}.log" 2>&1 || { tail -20 "$build/${1// /-}.log" && failed=1; }
}

# On those libraries, by the emulator's own option: in the environment they would be preloaded to the emulator, too.
test_port() {
  local name library bytes failed=0
  local tests=$repo_root/build/aarch64/bin/tests libraries=$repo_root/build/aarch64/lib
  for name in "${unit[@]}"; do
    execute "${name}_test" "$tests/${name}_test"
  done
  for library in libsluice libsluice-secure; do
    # A delete with the wrong size is what the secure build finds.
    [[ $library == libsluice-secure ]] && export GTEST_FILTER=-SizedDelete.*:SizedFree.*
    for name in "${preload[@]}"; do
      execute "${name}_test on $library.so" -E LD_PRELOAD="$libraries/$library.so" "$tests/${name}_test"
    done
    for bytes in 16384 65536; do
      for name in "${preload_on_larger_pages[@]}"; do
        execute "${name}_test on $library.so, pages of $bytes bytes" -E LARGER_PAGES=$bytes \
          -E LD_PRELOAD="$tests/larger_pages.so:$libraries/$library.so" "$tests/${name}_test"
      done
    done
  done
  unset GTEST_FILTER
  for bytes in 16384 65536; do
    for name in "${unit_on_larger_pages[@]}"; do
      execute "${name}_test, pages of $bytes bytes" -E LARGER_PAGES=$bytes -E LD_PRELOAD="$tests/larger_pages.so" \
        "$tests/${name}_test"
    done
  done
  ((failed == 0)) || fail "tests failed"
  where="executed by qemu-user, not on such a machine; larger pages pretended"
}
