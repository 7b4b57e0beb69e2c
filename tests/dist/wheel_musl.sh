#!/usr/bin/env bash
# The wheel for musl, in Alpine 3.23: a Python that is built for musl (musl_python.sh) runs programs on Sluice with it, and one that is linked
# statically says that it does not. Alpine's own package python3 was not tried.
source "$(dirname "$0")/testing.sh"
source "$tests/dist/wheels.sh"
source "$tests/dist/musl_python.sh"
wheel_for "musllinux_1_2_$(uname -m)" || fail "pip finds no wheel for musl: $(cat "$workspace/log")"
for library in "$packages"/sluice_malloc/*.so; do
  [[ $(readelf -d "$library" | grep -c '(NEEDED)') == 1 ]] && readelf -d "$library" | grep -qF "[libc.musl-$(uname -m).so.1]" || fail "$library needs more than musl"
  ! grep -qF "$(realpath "$tests/..")/" "$library" || fail "$library names the folder that it was built in"
done
python_tools --no-deps "$alpine_package"
alpine_system
build_musl_python
mkdir -p "$system"/usr/lib/python3.11/{lib-dynload,site-packages}
cp -r "$musl_python/Lib/." "$system/usr/lib/python3.11"
cp "$musl_python"/python3{,-static} "$system/usr/bin"
cp -r "$packages/." "$system/usr/lib/python3.11/site-packages"
cp "$workspace/script.py" "$system/root"
script=/root/script.py

musl=("${in_system[@]}" python3)
says "ld-musl" "${musl[@]}" -c 'print(open("/proc/self/maps").read())'
runs_on_sluice "${musl[@]}"
for secure in '' --secure; do
  says '"schema": "sluice-stats"' "${in_system[@]}" sh -c "LD_PRELOAD=\$(python3 -m sluice_malloc path $secure) SLUICE_STATS=json ls /"
done
# Threads and much memory, with Python's own objects, too.
cat >"$system/root/threads.py" <<'END'
import subprocess, threading
def work(number):
    kept = {}
    for step in range(20000):
        kept[step % 500] = bytes(step % 5000), [number] * (step % 50)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(subprocess.run(["ls", "/"], capture_output=True, check=True).stdout) > 0, "at the end")
END
for options in --all --secure '--all --secure'; do says "True at the end" "${musl[@]}" -m sluice_malloc run $options /root/threads.py; done

# musl's loader leaves out what it cannot read; a static program has no loader.
says "static" "${in_system[@]}" python3-static -c 'print("static")'
without='does not run on libsluice.so, which LD_PRELOAD names: it is statically linked, or runs with more rights than its caller'
status 125 "$without" "${in_system[@]}" python3-static -m sluice_malloc run -c 'print("without")'
printed=$("${in_system[@]}" python3-static -m sluice_malloc run -c 'print("without")' 2>/dev/null) && fail "a static Python ran"
[[ -z $printed ]] || fail "the program was run without the library: $printed"
echo "$0: passed"
