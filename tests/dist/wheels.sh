# What the tests of the wheels share: a virtual environment, $environment, among it. Sourced behind testing.sh.

environment=$workspace/environment
python3 -m venv "$environment" || skip "no virtual environment can be made"

# wheel_for PLATFORM: the one that pip takes for it from the files of the release, as $wheel; installed in $packages. It fails where there is none.
wheel_for() {
  local folder=$workspace/for-$1
  local pip=("$environment/bin/python" -m pip --quiet --disable-pip-version-check)
  local from=(--no-index --find-links "$files" --platform "$1" --only-binary=:all:)
  "${pip[@]}" download "${from[@]}" --dest "$folder" sluice-malloc >"$workspace/log" 2>&1 || return
  wheel=$files/$(ls "$folder")
  packages=$folder/packages
  "${pip[@]}" install "${from[@]}" --target "$packages" sluice-malloc >"$workspace/log" 2>&1 || fail "pip install for $1: $(cat "$workspace/log")"
}

# runs_on_sluice COMMAND...: a Python where the package is installed; `script` is its name there for $workspace/script.py.
script=$workspace/script.py
cat >"$workspace/script.py" <<'END'
import os, subprocess, sys
mapped = open("/proc/self/maps").read()
print(sys.argv[1:], "libsluice.so" in mapped, "libsluice-secure.so" in mapped, os.environ.get("PYTHONMALLOC"))
print("child", b"libsluice" in subprocess.run(["cat", "/proc/self/maps"], capture_output=True, check=True).stdout)
sys.exit(3)
END
runs_on_sluice() {
  status 3 "['a b', '--stats'] True False None" "$@" -m sluice_malloc run "$script" 'a b' --stats
  status 3 "child True" "$@" -m sluice_malloc run "$script"
  status 3 "[] False True None" "$@" -m sluice_malloc run --secure "$script"
  status 3 "[] True False malloc" "$@" -m sluice_malloc run --all "$script"
  status 0 "peak" "$@" -m sluice_malloc run --stats -c 'x = bytearray(10**7)'
  status 0 "utf8=1" "$@" -X utf8 -m sluice_malloc run -c 'import sys; print(f"utf8={sys.flags.utf8_mode}")'
  status 0 "/libsluice-secure.so" "$@" -m sluice_malloc path --secure
}
