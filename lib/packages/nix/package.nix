# Open it when a folder is added that the libraries are built from.
{ lib, stdenv, cmake, ninja }:
let
  root = ../../..;
  lines = lib.splitString "\n" (builtins.readFile (root + "/CMakeLists.txt"));
  versions = builtins.filter (found: found != null) (map (builtins.match "project\\(sluice VERSION ([0-9.]+) .*") lines);
  needed = [ "CMakeLists.txt" "LICENSE" "lib" "preload" "tests" ];
in
stdenv.mkDerivation {
  pname = "sluice";
  version = builtins.head (builtins.head versions);
  src = builtins.path {
    path = root;
    name = "sluice-source";
    filter = path: type: builtins.elem (builtins.head (lib.splitString "/" (lib.removePrefix (toString root + "/") path))) needed;
  };
  nativeBuildInputs = [ cmake ninja ];
  # The folders by their relative names, which sluice.pc needs; the hook of cmake gives absolute ones before these.
  cmakeFlags = [
    "-DSLUICE_TESTS=OFF"
    "-DSLUICE_COMMAND=OFF"
    "-DSLUICE_SCENARIOS=OFF"
    "-DSLUICE_WERROR=OFF"
    "-DCMAKE_INSTALL_LIBDIR=lib"
    "-DCMAKE_INSTALL_INCLUDEDIR=include"
  ];
  installPhase = ''
    runHook preInstall
    cmake --install . --component sluice_runtime
    cmake --install . --component sluice_development
    runHook postInstall
  '';
  meta = {
    description = "A drop-in malloc that tells what it did";
    license = lib.licenses.mit;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
