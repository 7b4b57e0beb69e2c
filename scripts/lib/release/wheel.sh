# The Python wheel: the shared libraries and lib/bindings/python, packed by PyPI's wheel. Sourced by scripts/release.

wheel_tools=$repo_root/build/wheel-tools

# glibc_floor FILE...: the highest version of glibc that a symbol asks for, as 2_34.
glibc_floor() { objdump -T "$@" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1 | tr . _; }

make_wheel() {
  say "making the wheel"
  tools_of_pypi "$wheel_tools" wheel==0.45.1
  local root=$stages/wheel library
  local information=$root/sluice_malloc-$version.dist-info package=$root/sluice_malloc
  mkdir -p "$information" "$package"
  install_stage "$stages/wheel-libraries" /usr runtime
  cp "$repo_root"/lib/bindings/python/sluice_malloc/*.py "$package"
  # Without numbers: a wheel has no links, and nothing is linked with these.
  for library in "$stages"/wheel-libraries/usr/lib/*.so.*; do cp "$library" "$package/$(basename "${library%.so.*}").so"; done
  cp "$repo_root/LICENSE" "$information"
  {
    printf 'Metadata-Version: 2.1\nName: sluice-malloc\nVersion: %s\nSummary: Run Python programs on the malloc Sluice\n' "$version"
    printf 'License: MIT\nRequires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n'
    cat "$repo_root/lib/bindings/python/README.md"
  } >"$information/METADATA"
  printf 'Wheel-Version: 1.0\nGenerator: scripts/release\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_%s_%s\n' \
    "$(glibc_floor "$package"/*.so)" "$processor" >"$information/WHEEL"
  same_time "$root"
  "$wheel_tools/bin/python" -m wheel pack --dest-dir "$output" "$root" >/dev/null || fail "wheel pack failed"
}
