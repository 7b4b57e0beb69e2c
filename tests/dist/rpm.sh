#!/usr/bin/env bash
# The RPM packages: installed into a folder they are whole and work from there, and erased they leave nothing. dnf, by the command of
# lib/docs/install.md, installs with them what they need from the system's packages, for which one stands in that has their names alone.
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
has_site '' "$root/usr/bin/sluice"
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

for command in dnf createrepo_c rpmbuild; do command -v "$command" >/dev/null || skip "no $command (scripts/setup --release)"; done
install=$(sed -n 's/^| Fedora, .*`\(dnf install [^`]*\)`.*/\1/p' "$tests/../lib/docs/install.md" | sed "s/VERSION/$version/g; s/x86_64/$(uname -m)/g")
[[ $install == "dnf install ./sluice-libs-"* ]] || fail "lib/docs/install.md names no command for Fedora"
{
  printf 'Name: stand-in\nVersion: 1\nRelease: 1\nSummary: What a system has\nLicense: MIT\nBuildArch: noarch\n'
  rpm --query --package --requires "${packages[0]}" "${packages[2]}" | sort -u | grep -v -e '^rpmlib(' -e '^sluice' -e '^libsluice' | sed 's/^/Provides: /'
  printf '%%description\n%%{summary}.\n%%files\n'
} >"$workspace/stand-in.spec"
grep -qF 'Provides: libdw.so.1()(64bit)' "$workspace/stand-in.spec" || fail "the packages do not ask for libdw"
rpmbuild -bb --quiet --define "_topdir $workspace/stand-in" "$workspace/stand-in.spec" >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail rpmbuild; }
mkdir "$workspace/empty"
for folder in "$workspace/empty" "$workspace/stand-in/RPMS"; do createrepo_c --quiet "$folder" || fail createrepo_c; done
# dnf_install REPOSITORY ROOT: the page's command, in the folder of the files. No script runs: there is no shell in ROOT.
dnf_install() {
  (cd "$files" && $install --assumeyes --installroot="$2" --releasever=9 --disablerepo='*' --repofrompath="system,$1" --enablerepo=system \
    --nogpgcheck --setopt=tsflags=noscripts --setopt=reposdir="$workspace/empty") >"$workspace/log" 2>&1
}
! dnf_install "$workspace/empty" "$workspace/without" && grep -qF 'nothing provides libdw.so.1' "$workspace/log" || { cat "$workspace/log" && fail "dnf installs without libdw"; }
dnf_install "$workspace/stand-in/RPMS" "$workspace/with" || { cat "$workspace/log" && fail "$install"; }
says "stand-in-1-1.noarch" rpm --root "$workspace/with" --query stand-in
says "$version" "$workspace/with/usr/bin/sluice" --version
echo "$0: passed"
