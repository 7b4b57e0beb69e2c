# The preset aarch64: both libraries and their tests by Debian's cross compiler, executed by qemu-user. Sourced by scripts/port.

sysroot=/usr/aarch64-linux-gnu
# What qemu-user carries: where threads fork it stops by assertions of its own, and many threads take it minutes.
unit=(heap region thread_cache)
preload=(contract aligned usable_size operator_new signals sized_free)

build_port() {
  command -v aarch64-linux-gnu-g++ >/dev/null || fail "no cross compiler (Debian: g++-aarch64-linux-gnu)"
  command -v qemu-aarch64 >/dev/null || install_qemu
  configure aarch64 -DSLUICE_TESTS=ON
  build aarch64 sluice_preload sluice_secure_preload sluice_static "${unit[@]/%/_test}" "${preload[@]/%/_test}"
  built=$repo_root/build/aarch64/lib/libsluice.so
}

install_qemu() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  say "installing qemu-user"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-user </dev/null ||
    fail "qemu-user could not be installed"
}

# On those libraries, by the emulator's own option: in the environment they would be preloaded to the emulator, too.
test_port() {
  local name library filter failed=0
  for name in "${unit[@]}"; do
    say "executing ${name}_test"
    timeout 600 qemu-aarch64 -L "$sysroot" "$repo_root/build/aarch64/bin/tests/${name}_test" >"$build/$name.log" 2>&1 ||
      { tail -20 "$build/$name.log" && failed=1; }
  done
  for library in libsluice libsluice-secure; do
    # A delete with the wrong size is what the secure build finds.
    filter='*'
    [[ $library == libsluice-secure ]] && filter=-SizedDelete.*:SizedFree.*
    for name in "${preload[@]}"; do
      say "executing ${name}_test on $library.so"
      timeout 600 env GTEST_FILTER="$filter" qemu-aarch64 -L "$sysroot" \
        -E LD_PRELOAD="$repo_root/build/aarch64/lib/$library.so" "$repo_root/build/aarch64/bin/tests/${name}_test" \
        >"$build/$name.log" 2>&1 || { tail -20 "$build/$name.log" && failed=1; }
    done
  done
  ((failed == 0)) || fail "tests failed"
  where="executed by qemu-user, not on such a machine"
}
