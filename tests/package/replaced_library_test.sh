#!/bin/sh
# usage: replaced_library_test.sh FOLDER PROGRAM VERSION
# Runs PROGRAM, which was linked to FOLDER/libsluice.so, where libsluice-secure.so has the name that it asks for.
set -eu
folder=$1 program=$2 version=$3
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
ln -s "$folder/libsluice-secure.so" "$temporary/libsluice.so.1"
# Ahead of the path that the program was linked with.
LD_LIBRARY_PATH=$temporary ldd "$program" | grep -F "$temporary/libsluice.so.1"
LD_LIBRARY_PATH=$temporary "$program" "$version"
