#!/usr/bin/env bash
# The crate sluice-malloc: its tests, a program of 64 threads among them. Needs cargo, and crates.io or what cargo has of it.
source "$(dirname "$0")/testing.sh"
command -v cargo >/dev/null || skip "no cargo here"
crate=$tests/../lib/bindings/rust
CARGO_TARGET_DIR=$(realpath "$files/..")/rust timeout 1800 cargo test --quiet --manifest-path "$crate/Cargo.toml" || fail "cargo test"
CARGO_TARGET_DIR=$(realpath "$files/..")/rust timeout 1800 cargo test --quiet --manifest-path "$crate/Cargo.toml" --no-default-features ||
  fail "cargo test without allocator-api2"
! cargo fmt --version >/dev/null 2>&1 || cargo fmt --check --manifest-path "$crate/Cargo.toml" || fail "cargo fmt"
echo "$0: passed"
