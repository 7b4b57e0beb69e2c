# What package.nix asks of nixpkgs, for nix.sh: the machine's own compiler and CMake, and the folders that nixpkgs' hook for CMake names.
let
  cache = builtins.listToAttrs (map (name: { inherit name; value = builtins.getEnv name; })
    [ "CCACHE_DIR" "CCACHE_BASEDIR" "CMAKE_C_COMPILER_LAUNCHER" "CMAKE_CXX_COMPILER_LAUNCHER" "CMAKE_BUILD_PARALLEL_LEVEL" ]);
  present = builtins.removeAttrs cache (builtins.filter (name: cache.${name} == "") (builtins.attrNames cache));
  lib = {
    splitString = separator: text: builtins.filter builtins.isString (builtins.split separator text);
    removePrefix = prefix: text: builtins.substring (builtins.stringLength prefix) (-1) text;
    licenses.mit = "MIT";
  };
  stdenv.mkDerivation = { pname, version, src, cmakeFlags, installPhase, nativeBuildInputs, meta }: derivation (present // {
    name = "${pname}-${version}";
    system = assert builtins.elem builtins.currentSystem meta.platforms; builtins.currentSystem;
    inherit src cmakeFlags installPhase;
    builder = "/bin/bash";
    args = [ "-ec" ''
      export PATH=/usr/local/bin:/usr/bin:/bin
      runHook() { :; }
      cmake -S "$src" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$out" \
        -DCMAKE_INSTALL_LIBDIR="$out/lib" -DCMAKE_INSTALL_INCLUDEDIR="$out/include" $cmakeFlags
      cmake --build build
      cd build
      eval "$installPhase"
    '' ];
  });
in {
  callPackage = file: arguments: import file ({ inherit lib stdenv; cmake = "cmake"; ninja = "ninja"; } // arguments);
}
