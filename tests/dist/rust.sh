#!/usr/bin/env bash
# The crate sluice-malloc: its tests, a program of 64 threads among them. Needs cargo, and crates.io or what cargo has of it.
source "$(dirname "$0")/testing.sh"
command -v cargo >/dev/null || skip "no cargo here"
crate=$tests/../lib/bindings/rust
CARGO_TARGET_DIR=$(realpath "$files/..")/rust timeout 1800 cargo test --quiet --manifest-path "$crate/Cargo.toml" || fail "cargo test"
CARGO_TARGET_DIR=$(realpath "$files/..")/rust timeout 1800 cargo test --quiet --manifest-path "$crate/Cargo.toml" --no-default-features ||
  fail "cargo test without allocator-api2"
# Miri has a malloc of its own for the global allocator: it sees that each block is used within its bounds and freed once. It cannot call
# what the crate has in C and C++, so frames and statistics are not checked.
if cargo +nightly miri setup >/dev/null 2>&1; then
  CARGO_TARGET_DIR=$(realpath "$files/..")/miri timeout 1800 cargo +nightly miri test --quiet --manifest-path "$crate/Cargo.toml" --test global -- \
    blocks_are_aligned_and_keep_their_bytes || fail "cargo miri"
else
  echo "$0: not run: Miri (rustup +nightly component add miri rust-src)"
fi
! cargo fmt --version >/dev/null 2>&1 || cargo fmt --check --manifest-path "$crate/Cargo.toml" || fail "cargo fmt"
echo "$0: passed"
