#!/bin/sh
# usage: pkg_config_test.sh COMPILER SOURCE OUTPUT VERSION
# Builds SOURCE with what pkg-config says of sluice and runs it on the static and on the shared library.
set -eu
compiler=$1 source=$2 output=$3 version=$4
test "$(pkg-config --modversion sluice)" = "$version"
# shellcheck disable=SC2046 # the flags are words
"$compiler" $(pkg-config --cflags sluice) "$source" -o "$output" $(pkg-config --libs sluice)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir sluice) "$output" "$version"
"$compiler" $(pkg-config --cflags sluice) "$source" -o "$output" -Wl,--whole-archive "$(pkg-config --variable=static_library sluice)" \
  -Wl,--no-whole-archive -pthread
"$output" "$version"
