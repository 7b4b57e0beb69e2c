#!/usr/bin/env bash
# The archives: checksums, what is in them, and the one of the build used from where it was unpacked.
source "$(dirname "$0")/testing.sh"

(cd "$files" && sha256sum --check --quiet --strict SHA256SUMS) || fail "checksums"
[[ $(find "$files" -type f ! -name SHA256SUMS | wc -l) == $(wc -l <"$files/SHA256SUMS") ]] || fail "files without a checksum"

name=sluice-$version-linux-$(uname -m)
mkdir "$workspace/place"
tar -xzf "$files/$name.tar.gz" -C "$workspace/place"
[[ $(ls "$workspace/place") == "$name" ]] || fail "the archive has more than one folder"
prefix=$workspace/place/$name
says "$version" "$prefix/bin/sluice" --version
says "$prefix/lib/libsluice.so" "$prefix/bin/sluice" run -- printenv LD_PRELOAD
says "$prefix/lib/libsluice-secure.so" "$prefix/bin/sluice" run --secure -- printenv LD_PRELOAD
says sluice "$prefix/bin/sluice" compare --runs 2 --warmup 0 --with system,sluice -- /bin/true
says sluice "$prefix/bin/sluice" bench run pair --with system,sluice --rounds 1 --ops 1000 --quiesce 0.01
has_site '' "$prefix/bin/sluice"
consumers "$prefix"
# What another system may lack. libdw, libelf and zlib have had these names since long.
readelf -d "$prefix/bin/sluice" | grep -q 'libfmt' && fail "the command needs a libfmt of one version"
repo_root=$(realpath "$tests/..")
source "$repo_root/scripts/lib/release/wheel.sh"
mapfile -t programs < <(find "$prefix" -type f -exec sh -c 'readelf -h "$1" 2>/dev/null | grep -qE "EXEC|DYN"' sh {} \; -print)
floor=$(glibc_floor "${programs[@]}" | tr _ .)
page=$(<"$repo_root/lib/docs/install.md")
[[ $page == *"| any Linux with glibc $floor |"* ]] || fail "the archive needs glibc $floor, and lib/docs/install.md says another version"
floor=$(glibc_floor "$prefix"/lib/libsluice*.so | tr _ .)
[[ $page == *"\`libsluice.so\` needs glibc $floor alone"* ]] || fail "libsluice.so needs glibc $floor, and lib/docs/install.md says another version"
[[ $(readelf -dW "$prefix/lib/libsluice.so" | grep -c NEEDED) == 1 ]] || fail "libsluice.so needs more than libc"
grep -rlF "$(realpath "$files/../..")" "$prefix" && fail "files name the folder that they were built in"

# A build from the archive of sources is what makes the other archives anew (same_bytes.sh); here, that it is complete.
tar -xzf "$files/sluice-$version.tar.gz" -C "$workspace"
[[ -x $workspace/sluice-$version/scripts/release ]] || fail "scripts/release is not in the sources"
[[ ! -e $workspace/sluice-$version/build && ! -e $workspace/sluice-$version/.git ]] || fail "the sources have more than the sources"
echo "$0: passed"
