"""A profile of a program that has run, with its real addresses and without names: profile_symbols.py PROGRAM FILE
[--wrong]. Its one sample is at the address that the program tells; with --wrong of a build id that no file
has."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from profile_writer import Profile, values  # noqa: E402

program, path = sys.argv[1:3]
lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
address = int(lines[0].split()[1], 16)
notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
if "--wrong" in sys.argv:
    build_id = "00" * 20
made = Profile()
for line in lines[1:]:
    span, rights, offset, _, _, *name = line.split(None, 5)
    start, limit = (int(each, 16) for each in span.split("-"))
    if start <= address < limit:
        mapping = made.mapping(start, limit, int(offset, 16), name[0], build_id)
        made.sample([(mapping, address)], values(1, 1000))
pathlib.Path(path).write_bytes(made.bytes())
print(build_id)
