# Python for musl, from Debian's sources: nothing is taken from Alpine's mirrors. Sourced behind testing.sh. Open it to take another version.

musl_python=$tests/../build/musl-python

# build_musl_python: in $musl_python, python3 for musl's loader, python3-static, which is linked statically, and what they import, Lib. Kept there.
build_musl_python() {
  [[ -d $musl_python/Lib ]] && return # which is moved there last
  command -v musl-gcc >/dev/null || skip "no musl-gcc (scripts/setup --release)"
  local build=$musl_python
  # shellcheck source=scripts/lib/ports/debian.sh
  source "$tests/../scripts/lib/ports/debian.sh"
  rm -rf "$build"
  mkdir -p "$build/source"
  (fail() { skip "$*"; } && say() { :; } && from_debian bookworm deb-src python3.11) || exit
  tar -xzf "$build"/apt/python3.11_*.orig.tar.gz -C "$build/source" --strip-components=1
  rm -rf "$build/apt"
  # configure asks the compiler for its system, and musl-gcc names that of the gcc behind it.
  printf '#!/bin/sh\n[ "$1" = --print-multiarch ] && exec echo "%s-linux-musl"\nexec musl-gcc "$@"\n' "$(uname -m)" >"$build/cc"
  chmod +x "$build/cc"
  # What modules of the standard library need that are not built in anyway.
  printf '%s\n' '*static*' '_posixsubprocess _posixsubprocess.c' 'select selectmodule.c' '_struct _struct.c' 'math mathmodule.c' \
    'fcntl fcntlmodule.c' '_random _randommodule.c' 'array arraymodule.c' '_socket socketmodule.c' >"$build/source/Modules/Setup.local"
  (
    cd "$build/source" &&
      ./configure -q CC="$build/cc" --prefix=/usr --without-ensurepip --disable-test-modules --without-doc-strings CFLAGS=-O1 &&
      make -j"${JOBS:-2}" python && strip -o "$build/python3" python &&
      rm python && make python LINKFORSHARED=-static && strip -o "$build/python3-static" python
  ) >"$build/log" 2>&1 || { tail -n 20 "$build/log" && fail "Python for musl was not built"; }
  rm -rf "$build/source/Lib/test"
  mv "$build/source/Lib" "$build"
  rm -rf "$build/source"
}
