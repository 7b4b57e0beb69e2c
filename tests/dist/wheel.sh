#!/usr/bin/env bash
# The wheel: installed in a fresh environment it runs programs on Sluice; its tag is what auditwheel finds.
source "$(dirname "$0")/testing.sh"
wheels=("$files"/sluice_malloc-"$version"-py3-none-manylinux_*_"$(uname -m)".whl)
[[ -f ${wheels[0]} && ${#wheels[@]} == 1 ]] || fail "no wheel, or more than one"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "Python is older than 3.10"
python3 -m venv "$workspace/venv" || skip "no virtual environment can be made"
python=$workspace/venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --no-index "${wheels[0]}" || fail "pip install"

cat >"$workspace/script.py" <<'END'
import os, subprocess, sys
mapped = open("/proc/self/maps").read()
print(sys.argv[1:], "libsluice.so" in mapped, "libsluice-secure.so" in mapped, os.environ.get("PYTHONMALLOC"))
print("child", b"libsluice" in subprocess.run(["cat", "/proc/self/maps"], capture_output=True, check=True).stdout)
sys.exit(3)
END
status 3 "['a b', '--stats'] True False None" "$python" -m sluice_malloc run "$workspace/script.py" 'a b' --stats
status 3 "child True" "$python" -m sluice_malloc run "$workspace/script.py"
status 3 "[] False True None" "$python" -m sluice_malloc run --secure "$workspace/script.py"
status 3 "[] True False malloc" "$python" -m sluice_malloc run --all "$workspace/script.py"
status 0 "peak" "$python" -m sluice_malloc run --stats -c 'x = bytearray(10**7)'
status 0 "utf8=1" "$python" -X utf8 -m sluice_malloc run -c 'import sys; print(f"utf8={sys.flags.utf8_mode}")'
status 0 "/libsluice-secure.so" "$python" -m sluice_malloc path --secure
status 2 "no script" "$python" -m sluice_malloc run
status 2 "usage" "$python" -m sluice_malloc
status 2 "unrecognized" "$python" -m sluice_malloc run --sure "$workspace/script.py"
status 0 "1 libsluice" env LD_PRELOAD="$("$python" -m sluice_malloc path)" "$python" -m sluice_malloc run -c \
  'import os; print(os.environ["LD_PRELOAD"].count("libsluice.so"), "libsluice")'
"$python" -m pip uninstall --yes --quiet --disable-pip-version-check sluice-malloc
[[ -z $(find "$workspace/venv" -name '*sluice*') ]] || fail "files stay after the wheel was uninstalled"

if "$python" -m pip install --quiet --disable-pip-version-check auditwheel 2>/dev/null; then
  tag=$(basename "${wheels[0]}" .whl)
  tag=${tag#*-none-}
  printed=$("$workspace/venv/bin/auditwheel" show "${wheels[0]}" 2>&1) || fail "auditwheel: $printed"
  tr -d '\n' <<<"$printed" | grep -qE "constrains the platform tag to +\"$tag\"|consistent with +the following platform tag: +\"$tag\"" || fail "the tag is $tag: $printed"
else
  echo "$0: auditwheel could not be installed; the tag was not compared"
fi
echo "$0: passed"
