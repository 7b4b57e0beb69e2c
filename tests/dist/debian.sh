#!/usr/bin/env bash
# The Debian packages: lintian finds no error; apt installs them in a system of their own, as lib/docs/install.md says, with what they
# need; they work there, and removed they leave nothing. That system is a copy of one that debootstrap makes from the network, once
# (BASE says where it is kept), and which has none of what they need.
source "$(dirname "$0")/testing.sh"
base=${BASE:-$files/../debian-stock}

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
  debootstrap --variant=minbase bookworm "$base" >"$workspace/log" 2>&1 || { tail -n 5 "$workspace/log" && skip "debootstrap made no system"; }
  touch "$base/complete"
fi
system=$workspace/system
cp -a "$base" "$system"
for library in libdw.so.1 libelf.so.1 libsqlite3.so.0; do
  [[ -z $(find "$system/usr/lib" -name "$library") ]] || fail "$base has $library, which the packages must bring"
done

in_system=(unshare --mount sh -c 'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"' sh "$system")
"${in_system[@]}" true || skip "no /proc can be mounted here"
cp /etc/resolv.conf /etc/hosts "$system/etc"
"${in_system[@]}" apt-get update >"$workspace/log" 2>&1 || skip "apt reaches no archive of Debian: $(tail -n 1 "$workspace/log")"
# apt's own notes of what it has fetched and why something is installed.
paths() { paths_of "$system" | grep -v -e ' \./var/lib/apt/' -e ' \./var/cache/apt/'; }
before=$(paths)
cache=$(sha256sum <"$system/etc/ld.so.cache")
# As in an image that is made from it: without the network.
image "$tests/../lib/packages/containers/Dockerfile" "$system" "${packages[0]}" "${in_system[@]}"
"${in_system[@]}" dpkg --purge libsluice1 >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "dpkg --purge libsluice1"; }
mkdir "$system/packages"
cp "${packages[@]}" "$system/packages"
# The page's command, where a reader has changed to the folder of the files.
install=$(sed -n 's/^| Debian 12 .*`\(apt install [^`]*\)`.*/\1/p' "$tests/../lib/docs/install.md" | sed "s/VERSION/$version/g")
[[ $install == "apt install ./libsluice1_"* ]] || fail "lib/docs/install.md names no command for Debian"
"${in_system[@]}" sh -c "cd packages && $install --yes" >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "$install"; }
"${in_system[@]}" sh -c 'apt install --yes ./packages/libsluice-dev_*.deb' >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "apt install libsluice-dev"; }
rm -r "$system/packages"
for path in man/man1/sluice.1.gz bash-completion/completions/sluice zsh/vendor-completions/_sluice fish/vendor_completions.d/sluice.fish; do
  [[ -s $system/usr/share/$path ]] || fail "no /usr/share/$path"
done
says libsluice-secure.so.1 "${in_system[@]}" ldconfig -p
says "$version" "${in_system[@]}" sluice --version
says /libsluice.so "${in_system[@]}" sluice run -- printenv LD_PRELOAD
says /libsluice-secure.so "${in_system[@]}" sluice run --secure -- printenv LD_PRELOAD
says '"schema": "sluice-stats"' "${in_system[@]}" env LD_PRELOAD=libsluice.so.1 SLUICE_STATS=json ls /
says sluice "${in_system[@]}" sluice compare --runs 2 --warmup 0 --with system,sluice -- /bin/true
says sluice "${in_system[@]}" sluice bench run sqlite --with system,sluice --rounds 1 --seconds 0.05 --quiesce 0.01
has_site "$system" "${in_system[@]}" sluice
# Without the links for building, which sluice does not depend on.
"${in_system[@]}" dpkg --purge libsluice-dev >/dev/null || fail "dpkg --purge libsluice-dev"
says /libsluice.so.1 "${in_system[@]}" sluice run -- printenv LD_PRELOAD
says sluice "${in_system[@]}" sluice compare --runs 2 --warmup 0 --with system,sluice,secure -- /bin/true
"${in_system[@]}" dpkg --verify || fail "dpkg --verify"
"${in_system[@]}" sh -c 'apt-get purge --yes sluice libsluice1 && apt-get autoremove --purge --yes' >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "apt-get purge"; }
diff <(cat <<<"$before") <(paths) || fail "files stay after the packages were removed"
[[ $(sha256sum <"$system/etc/ld.so.cache") == "$cache" ]] || fail "the loader's cache still differs"
echo "$0: passed"
