#!/usr/bin/env bash
# The wheels: pip takes the right one for each platform, and each has what it must have; the one for glibc, installed in a fresh environment,
# runs programs on Sluice, and says so where the loader leaves the library out. Their tags are what auditwheel finds. The others are executed in
# wheel_musl.sh and wheel_macos.sh.
source "$(dirname "$0")/testing.sh"
source "$tests/dist/wheels.sh"
processor=$(uname -m)
wheels=("$files"/sluice_malloc-"$version"-py3-none-*.whl)
((${#wheels[@]} == 4)) || fail "not four wheels: ${wheels[*]}"
glibc=("$files"/sluice_malloc-"$version"-py3-none-manylinux_*_"$processor".whl)
[[ -f ${glibc[0]} && ${#glibc[@]} == 1 ]] || fail "no wheel for glibc, or more than one"
tag_of() { basename "$1" .whl | sed 's/.*-none-//'; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "Python is older than 3.10"
python=$environment/bin/python

# picks WANTED PLATFORM: the end of the wheel's name.
picks() {
  wheel_for "$2" || fail "pip finds no wheel for $2: $(cat "$workspace/log")"
  [[ $wheel == *-py3-none-$1.whl ]] || fail "pip takes $wheel for $2"
}
picks "$(tag_of "${glibc[0]}")" "$(tag_of "${glibc[0]}")"
picks "musllinux_1_2_$processor" "musllinux_1_2_$processor"
picks macosx_12_0_arm64 macosx_12_0_arm64
picks macosx_12_0_arm64 macosx_15_0_arm64
picks macosx_12_0_x86_64 macosx_13_0_x86_64
for platform in macosx_11_0_arm64 musllinux_1_1_"$processor" manylinux_2_5_"$processor" win_amd64; do
  ! wheel_for "$platform" || fail "pip takes $wheel for $platform"
done
python3 - "$version" "$tests/../lib/bindings/python" "${wheels[@]}" <<'END' || fail "a wheel is not as it must be"
import base64, csv, hashlib, pathlib, re, sys, zipfile
version, source, *wheels = sys.argv[1:]
python = {f"sluice_malloc/{path.name}" for path in pathlib.Path(source, "sluice_malloc").glob("*.py")}
metadata = set()
for path in wheels:
    tag = re.fullmatch(r".*-(py3-none-.*)\.whl", path)[1]
    with zipfile.ZipFile(path) as wheel:
        information = f"sluice_malloc-{version}.dist-info/"
        suffix = ".dylib" if "macosx" in tag else ".so"
        expected = python | {f"sluice_malloc/libsluice{kind}{suffix}" for kind in ("", "-secure")}
        expected |= {information + name for name in ("LICENSE", "METADATA", "RECORD", "WHEEL")}
        assert set(wheel.namelist()) == expected, (path, wheel.namelist())
        written = wheel.read(information + "WHEEL").decode()
        assert f"\nTag: {tag}\n" in written + "\n" and "Root-Is-Purelib: false" in written, (path, written)
        for name, digest, _ in csv.reader(wheel.read(information + "RECORD").decode().splitlines()):
            wanted = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
            assert name.endswith("/RECORD") or digest == f"sha256={wanted}", (path, name)
        for name in python:
            assert wheel.read(name) == pathlib.Path(source, name).read_bytes(), (path, name)
        magic = {wheel.read(name)[:4] for name in expected if name.endswith(suffix)}
        assert magic == {b"\xcf\xfa\xed\xfe" if suffix == ".dylib" else b"\x7fELF"}, (path, magic)
        metadata.add(wheel.read(information + "METADATA").decode())
(text,) = metadata  # indexes want the same of all
head, _, description = text.partition("\n\n")
assert f"\nName: sluice-malloc\nVersion: {version}\n" in head and "\nRequires-Python: >=3.10" in head, head
assert description == pathlib.Path(source, "README.md").read_text(), description
END

"$python" -m pip install --quiet --disable-pip-version-check --no-index "${glibc[0]}" || fail "pip install"
runs_on_sluice "$python"
status 0 "1 libsluice" env LD_PRELOAD="$("$python" -m sluice_malloc path)" "$python" -m sluice_malloc run -c \
  'import os; print(os.environ["LD_PRELOAD"].count("libsluice.so"), "libsluice")'
status 2 "no script" "$python" -m sluice_malloc run
status 2 "usage" "$python" -m sluice_malloc
status 2 "unrecognized" "$python" -m sluice_malloc run --sure "$workspace/script.py"
# The start that asks whether the library is taken leaves nothing of the program's own options behind: one profile is written, at one end.
status 0 "" env SLUICE_PROFILE="$workspace/profile.%p.pb" "$python" -m sluice_malloc run -c ''
[[ $(find "$workspace" -name 'profile.*.pb' | wc -l) == 1 ]] || fail "not one profile was written"
packages=$("$python" -c 'import os, sluice_malloc; print(os.path.dirname(os.path.dirname(sluice_malloc.__file__)))')
# What a loader leaves out without a word, and with one.
if ((EUID == 0)) && command -v setpriv >/dev/null; then
  chmod 755 "$workspace"
  cp "$(realpath "$python")" "$workspace/privileged"
  chmod u+s "$workspace/privileged"
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$packages")
  if [[ $("${as_nobody[@]}" "$workspace/privileged" -c 'import os; print(os.geteuid())') == 0 ]]; then
    status 125 "does not run on libsluice.so, which LD_PRELOAD names: it is statically linked, or runs with more rights than its caller" \
      "${as_nobody[@]}" "$workspace/privileged" -m sluice_malloc run -c 'print("without")'
  else
    echo "$0: a program here gets no more rights than its caller; that was not tested"
  fi
fi
cp "$packages/sluice_malloc/libsluice.so" "$workspace/kept.so"
echo damaged >"$packages/sluice_malloc/libsluice.so"
status 125 "does not run on libsluice.so, which LD_PRELOAD names: ERROR: ld.so: object" "$python" -m sluice_malloc run -c 'print("without")'
rm "$packages/sluice_malloc/libsluice.so"
status 125 "not complete" "$python" -m sluice_malloc run -c 'print("without")'
cp "$workspace/kept.so" "$packages/sluice_malloc/libsluice.so"
"$python" -m pip uninstall --yes --quiet --disable-pip-version-check sluice-malloc
[[ -z $(find "$environment" -name '*sluice*') ]] || fail "files stay after the wheel was uninstalled"

if "$python" -m pip install --quiet --disable-pip-version-check auditwheel==6.8.2 2>/dev/null; then
  for wheel in "${glibc[0]}" "$files/sluice_malloc-$version-py3-none-musllinux_1_2_$processor.whl"; do
    tag=$(tag_of "$wheel")
    # Names alone count: the libraries that this machine would load are not those of another system.
    printed=$("$environment/bin/auditwheel" show --ldpaths '' "$wheel" 2>&1) || fail "auditwheel: $printed"
    tr -s '\n' ' ' <<<"$printed" | grep -qE "constrains the platform tag to +\"$tag\"|consistent with +the following platform tag: +\"$tag\"" ||
      fail "the tag is $tag: $printed"
  done
else
  echo "$0: auditwheel could not be installed; the tags were not compared"
fi
echo "$0: passed"
