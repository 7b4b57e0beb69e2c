#!/usr/bin/env bash
# The RPM packages: installed into a folder they are whole and work from there, and erased they leave nothing.
source "$(dirname "$0")/testing.sh"
command -v rpm >/dev/null || skip "no rpm (scripts/setup --release)"
((EUID == 0)) || skip "only root installs packages"

packages=()
for name in sluice-libs sluice-devel sluice; do packages+=("$files/$name-$version-1.$(uname -m).rpm"); done
root=$workspace/root
mkdir -p "$root"
# Neither is this a system of RPMs, nor are its libraries those of one: what is depended on is looked at, and not asked for.
rpm=(rpm --root "$root" --dbpath /var/lib/rpm)
"${rpm[@]}" --initdb
"${rpm[@]}" --install --nodeps --noscripts "${packages[@]}" || fail "rpm --install"
says "$version" "$root/usr/bin/sluice" --version
says "$root/usr/lib64/libsluice.so" "$root/usr/bin/sluice" run -- printenv LD_PRELOAD
says sluice "$root/usr/bin/sluice" compare --runs 2 --warmup 0 --with system,sluice,secure -- /bin/true
consumers "$root/usr"
says '' "${rpm[@]}" --verify --nodeps --noscripts sluice sluice-libs sluice-devel
says 'libsluice.so.1()(64bit)' rpm --query --package --provides "${packages[0]}"
says ldconfig rpm --query --package --scripts "${packages[0]}"
says 'libdw.so.1()(64bit)' rpm --query --package --requires "${packages[2]}"
"${rpm[@]}" --erase --noscripts sluice-devel || fail "rpm --erase sluice-devel"
says "$root/usr/lib64/libsluice.so.1" "$root/usr/bin/sluice" run -- printenv LD_PRELOAD
"${rpm[@]}" --erase --noscripts sluice sluice-libs || fail "rpm --erase"
# Folders that all packages share belong to the system's own.
left=$(find "$root/usr" ! -type d -o -name '*sluice*')
[[ -z $left ]] || fail "after the packages were erased there is still: $left"
echo "$0: passed"
