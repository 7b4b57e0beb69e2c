#!/usr/bin/env bash
# The memory of a program that is several processes: of all at once, beside that of the largest one.
. "$(dirname "$0")/testing.sh"
python=$(python3 -c 'import sys; print(sys.executable)') || skip 'no python3'

# Six children hold 60 MB each; they let go a second after the last one has it.
cat >six.py <<'END'
import os, time
ready, start = os.pipe()
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        block = b"x" * 60_000_000
        os.write(start, b"x")
        time.sleep(60)
    children.append(child)
for _ in children:
    os.read(ready, 1)
time.sleep(1)
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
END
run "$SLUICE" compare --runs 1 --warmup 0 --with system,sluice --json six.json --html six.html --explain -- "$python" six.py
expect_status 0
expect_in output 'peak memory, MiB'
expect_in output 'largest process, MiB'
expect_in output 'sum of their shares'
"$python" - <<'END' || fail 'the memory of all'
import json
document = json.load(open("six.json"))
assert document["memory_of_all"]["method"] == "pss" and document["memory_of_all"]["longest_gap_ms"] >= 0
for allocator in document["allocators"]:
    metrics = allocator["metrics"]
    assert 360_000_000 / 1024 <= metrics["peak_all_kib"]["median"] < 450_000, metrics["peak_all_kib"]
    assert 60_000_000 / 1024 <= metrics["peak_rss_kib"]["median"] < 120_000, metrics["peak_rss_kib"]
    assert "place" in metrics["peak_all_kib"] and "place" not in metrics["peak_rss_kib"]
END

# Of a single process both are what the system counts.
run "$SLUICE" compare --runs 2 --warmup 0 --with system --json one.json -- "$python" -c 'b = b"x" * 50_000_000'
"$python" -c 'import json; m = json.load(open("one.json"))["allocators"][0]["metrics"]
assert m["peak_all_kib"]["samples"] == m["peak_rss_kib"]["samples"] and m["peak_all_kib"]["median"] > 50_000, m' ||
  fail 'the memory of one process'

# The mean over the time: 200 MB for a third of it.
cat >rests.py <<'END'
import time
time.sleep(0.5)
block = b"x" * 200_000_000
start = time.monotonic()
while time.monotonic() - start < 0.5:
    time.sleep(0.01)
del block
time.sleep(0.5)
END
run "$SLUICE" compare --runs 1 --warmup 0 --with system --json rests.json --explain -- "$python" rests.py
expect_in output 'average memory, MiB'
expect_in output 'its rests included'
"$python" -c 'import json; m = json.load(open("rests.json"))["allocators"][0]["metrics"]
peak, mean = m["peak_all_kib"]["median"], m["mean_all_kib"]["median"]
assert peak > 200_000_000 / 1024 and 20_000 < mean < peak, m' || fail 'the mean over the time'

# What has left its parents counts as well.
cat >daemon.py <<'END'
import os, time
ready, start = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        block = b"x" * 80_000_000
        os.write(start, b"x")
        time.sleep(60)
    os._exit(0)
block = b"x" * 80_000_000
os.read(ready, 1)
time.sleep(1)
END
run "$SLUICE" compare --runs 1 --warmup 0 --with system --json daemon.json -- "$python" daemon.py
"$python" -c 'import json; m = json.load(open("daemon.json"))["allocators"][0]["metrics"]
assert m["peak_all_kib"]["median"] > 160_000_000 / 1024, m' || fail 'the memory of a daemon'

# --diff decides by all, and by the largest where an earlier version knew no more.
"$python" - <<'END'
import json
def write(name, all_kib, largest):
    document = json.load(open("six.json"))
    for allocator in document["allocators"]:
        metrics = allocator["metrics"]
        metrics["wall_seconds"]["samples"] = [1.0] * 5
        metrics["peak_rss_kib"]["samples"] = [largest] * 5
        if all_kib is None:
            del metrics["peak_all_kib"]
        else:
            metrics["peak_all_kib"]["samples"] = [all_kib] * 5
    json.dump(document, open(name, "w"))
write("base.json", 1000, 100)
write("all.json", 1200, 90)
write("largest.json", 1000, 200)
write("old.json", None, 100)
END
run "$SLUICE" compare --diff base.json all.json
expect_status 1
expect_in output '20.0 % more'
run "$SLUICE" compare --diff base.json largest.json
expect_status 0
run "$SLUICE" compare --diff old.json largest.json
expect_status 1
expect_in output '2.0 times more'
finish
