#!/usr/bin/env bash
# The package for Go: a program of another module builds with the shared library of the binary archive, with the static one and
# with neither; its C code runs on Sluice. Needs no network.
source "$(dirname "$0")/testing.sh"
command -v go >/dev/null || skip "no go here"
tar -xzf "$files/sluice-$version-linux-$(uname -m).tar.gz" -C "$workspace" || fail "no binary archive"
prefix=$workspace/sluice-$version-linux-$(uname -m)
package=$tests/../lib/bindings/go
export GOPROXY=off GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPATH=$workspace/go GOCACHE=$workspace/cache PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sluice.pc)")
library=$(dirname "$PKG_CONFIG_PATH")
unformatted=$(gofmt -l "$package") && [[ -z $unformatted ]] || fail "not as gofmt writes: $unformatted"

# builds PROGRAM ARGUMENT...
builds() { go build -o "$@" >"$workspace/log" 2>&1 || { head -n 20 "$workspace/log" && fail "go build of $1"; }; }

# As lib/bindings/go/README.md says.
mkdir "$workspace/project"
cp "$package/example/main.go" "$workspace/project"
cd "$workspace/project"
go mod init example.org/project 2>/dev/null
go mod edit -require sluice.example/malloc@v0.0.0 -replace sluice.example/malloc="$package"
go vet . || fail "go vet"
builds shared .
says "Sluice $version held 6" env LD_LIBRARY_PATH="$library" ./shared
readelf -d shared | grep -q 'NEEDED.*libsluice\.so\.1' || fail "the program is not linked with the shared library"
# Some distributions' linkers leave out libraries that nothing needs.
CGO_LDFLAGS=-Wl,--as-needed builds needed .
says "Sluice $version held 6" env LD_LIBRARY_PATH="$library" ./needed
says '"schema": "sluice-stats"' env LD_LIBRARY_PATH="$library" ./shared --json
archive="$(pkg-config --variable=static_options sluice) $(pkg-config --variable=static_library sluice) -pthread"
export CGO_CFLAGS
CGO_CFLAGS=$(pkg-config --cflags sluice)
builds static -tags sluice_weak -ldflags "-linkmode external -extldflags '$archive'" .
says "Sluice $version held 6" ./static
! readelf -d static | grep -q libsluice || fail "the program is linked with the shared library"
builds weak -tags sluice_weak .
says "Sluice $version held 6" env LD_PRELOAD="$library/libsluice.so" ./weak
! printed=$(./weak 2>&1) || fail "without Sluice the example passes"
grep -q "not Sluice's: live bytes 0, 0, 0; 0 blocks" <<<"$printed" || fail "without Sluice the example says: $printed"

# Without the package: cgo's programs by a preload, others not at all.
mkdir "$workspace/other"
cd "$workspace/other"
printf 'package main\n\n// #include <malloc.h>\nimport "C"\n\nfunc main() { C.malloc_stats() }\n' >cgo.go
printf 'package main\n\nfunc main() { println("static") }\n' >pure.go
builds cgo cgo.go
CGO_ENABLED=0 builds pure pure.go
says "sluice $version" env LD_PRELOAD="$library/libsluice.so" ./cgo
! printed=$("$prefix/bin/sluice" run -- ./pure 2>&1) || fail "sluice run does not say that a static program has no malloc: $printed"
grep -qF 'static' <<<"$printed" || fail "sluice run says of a static program: $printed"
echo "$0: passed"
