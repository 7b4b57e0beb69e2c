#!/usr/bin/env bash
# The expression for Nix, from the archive of sources: nix builds it in a store of its own, and the projects of tests/package build
# with that. Nixpkgs is not at hand: nixpkgs_stand_in.nix stands for it. Needs nix-build, and fetches nothing.
source "$(dirname "$0")/testing.sh"
command -v nix-build >/dev/null || skip "no nix-build (scripts/setup --release)"
unpack_sources
trap 'chmod -R u+w "$workspace" && rm -rf "$workspace"' EXIT # a store is without the right to write
export NIX_STORE_DIR=$workspace/nix/store NIX_STATE_DIR=$workspace/nix/var NIX_LOG_DIR=$workspace/nix/log NIX_CONF_DIR=$workspace/nix/etc
export NIX_PATH='' HOME=$workspace
# The compiler is the machine's, and no user is made for the build.
timeout 1800 nix-build "$sources/lib/packages/nix" --arg pkgs "import $tests/dist/nixpkgs_stand_in.nix" --out-link "$workspace/result" \
  --option sandbox false --option build-users-group '' >"$workspace/log" 2>&1 || { tail -n 20 "$workspace/log" && fail nix-build; }
prefix=$(realpath "$workspace/result")
[[ $(basename "$prefix") == *-sluice-$version ]] || fail "the name is $(basename "$prefix")"
consumers "$prefix"
says '"schema": "sluice-stats"' env LD_PRELOAD="$prefix/lib/libsluice.so" SLUICE_STATS=json ls /
says '"schema": "sluice-stats"' env LD_PRELOAD="$prefix/lib/libsluice-secure.so" SLUICE_STATS=json ls /
# What package.nix does not build from must not make it build anew.
copied=$(echo "$NIX_STORE_DIR"/*-sluice-source)
[[ -f $copied/CMakeLists.txt && ! -e $copied/scenarios && ! -e $copied/scripts ]] || fail "other sources are taken than those needed"
echo "$0: passed"
