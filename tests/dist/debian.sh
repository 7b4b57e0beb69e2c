#!/usr/bin/env bash
# The Debian packages: lintian finds no error; installed in a system of their own they work, and removed they leave nothing.
# That system is made by debootstrap, from the network, once (BASE says where it is kept).
source "$(dirname "$0")/testing.sh"
base=${BASE:-$files/../debian-root}

packages=()
for name in libsluice1 libsluice-dev sluice; do packages+=("$(echo "$files/${name}_$version"-1_*.deb)"); done
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error "${packages[@]}" || fail "lintian"
else
  skip "no lintian (scripts/setup --release)"
fi

# The packages to build with, unpacked.
for package in "${packages[@]::2}"; do dpkg-deb --extract "$package" "$workspace/unpacked"; done
consumers "$workspace/unpacked/usr"
dpkg-deb --ctrl-tarfile "${packages[0]}" | tar -xO ./shlibs | grep -qxF "libsluice-secure 1 libsluice1 (>= $version)" || fail "shlibs"

((EUID == 0)) || skip "only root makes a system to install in"
command -v debootstrap >/dev/null || skip "no debootstrap (scripts/setup --release)"
if [[ ! -f $base/complete ]]; then
  rm -rf "$base"
  # What the command depends on comes along, so that dpkg alone can install it.
  needed=$(dpkg-deb -f "${packages[2]}" Depends | tr ',' '\n' | sed 's/ *\([a-z0-9.+-]*\).*/\1/' | grep -v -e '^libsluice' -e '^$' | paste -sd,)
  debootstrap --variant=minbase --include="$needed" bookworm "$base" >"$workspace/log" 2>&1 || { tail -n 5 "$workspace/log" && skip "debootstrap made no system"; }
  touch "$base/complete"
fi

in_system=(unshare --mount sh -c 'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" "$@"' sh "$base")
"${in_system[@]}" true || skip "no /proc can be mounted here"
before=$(paths_of "$base")
cache=$(sha256sum <"$base/etc/ld.so.cache")
mkdir "$base/packages"
cp "${packages[@]}" "$base/packages"
"${in_system[@]}" sh -c 'dpkg --install packages/*.deb' >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "dpkg --install"; }
rm -r "$base/packages"
for path in man/man1/sluice.1.gz bash-completion/completions/sluice zsh/vendor-completions/_sluice fish/vendor_completions.d/sluice.fish; do
  [[ -s $base/usr/share/$path ]] || fail "no /usr/share/$path"
done
says libsluice-secure.so.1 "${in_system[@]}" ldconfig -p
says "$version" "${in_system[@]}" sluice --version
says /libsluice.so "${in_system[@]}" sluice run -- printenv LD_PRELOAD
says /libsluice-secure.so "${in_system[@]}" sluice run --secure -- printenv LD_PRELOAD
says '"schema": "sluice-stats"' "${in_system[@]}" env LD_PRELOAD=libsluice.so.1 SLUICE_STATS=json ls /
says sluice "${in_system[@]}" sluice compare --runs 2 --warmup 0 --with system,sluice -- /bin/true
says sluice "${in_system[@]}" sluice bench run sqlite --with system,sluice --rounds 1 --seconds 0.05 --quiesce 0.01
# Without the links for building, which sluice does not depend on.
"${in_system[@]}" dpkg --purge libsluice-dev >/dev/null || fail "dpkg --purge libsluice-dev"
says /libsluice.so.1 "${in_system[@]}" sluice run -- printenv LD_PRELOAD
says sluice "${in_system[@]}" sluice compare --runs 2 --warmup 0 --with system,sluice,secure -- /bin/true
"${in_system[@]}" dpkg --verify || fail "dpkg --verify"
"${in_system[@]}" dpkg --purge sluice libsluice1 >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "dpkg --purge"; }
diff <(cat <<<"$before") <(paths_of "$base") || fail "files stay after the packages were removed"
[[ $(sha256sum <"$base/etc/ld.so.cache") == "$cache" ]] || fail "the loader's cache still differs"
echo "$0: passed"
