# The libraries for macOS, by zig as scripts/port builds them; the Python wheels take them. Sourced by scripts/release.

# build_for_macos PROCESSOR: libsluice.dylib and libsluice-secure.dylib, into $stages/macos-PROCESSOR/lib. In a shell of its own: what zig needs
# in the environment ends with it.
build_for_macos() (
  port="for macOS on $1" build=$stages/macos-$1
  map="-ffile-prefix-map=$repo_root=/usr/src/sluice-$version"
  say "building $port"
  install_tools
  # Without what debuggers read: it names the files of this build.
  quietly configure_for_macos "$1" -DCMAKE_C_FLAGS="$map" -DCMAKE_CXX_FLAGS="$map" -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-S \
    -DSLUICE_COMMAND=OFF -DSLUICE_TESTS=OFF -DSLUICE_SCENARIOS=OFF
  quietly cmake --build "$build" --target sluice_preload sluice_secure_preload -- -j "$jobs"
)
