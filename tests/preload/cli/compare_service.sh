#!/usr/bin/env bash
# `sluice compare --load`: a server that must be ready, is loaded, and is ended by a signal.
. "$(dirname "$0")/testing.sh"
cat >server.py <<'END'
import os, signal, socket, sys, time
signal.signal(signal.SIGUSR2, lambda *_: (os.unlink("socket"), sys.exit(0)))
time.sleep(0.05)
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
server.listen(8)
while True:
    client, _ = server.accept()
    block = bytearray(30_000_000)
    client.sendall(b"%d" % len(block))
    client.close()
END
cat >client.py <<'END'
import socket
client = socket.socket(socket.AF_UNIX)
client.connect("socket")
print("got", client.recv(100).decode(), "in", 12.5, "rounds")
END
python=$(command -v python3)

run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice --ready 'test -S socket' --load "$python client.py" --stop USR2 \
  --metric 'in ([0-9.]+) rounds' --json s.json -- "$python" server.py
expect_status 0
expect_in output 'load, ms'
"$python" - <<'END' || fail "the JSON file: $(cat s.json)"
import json
for allocator in json.load(open("s.json"))["allocators"]:
    metrics = allocator["metrics"]
    assert metrics["load_figure"]["samples"] == [12.5, 12.5], metrics
    assert metrics["peak_rss_kib"]["median"] > 30000, "the memory is not the server's"
    assert metrics["load_seconds"]["median"] > 0
END
[ ! -e socket ] || fail 'the server was not ended by its signal'

run "$SLUICE" compare --runs 1 --warmup 0 --with system --load 'echo bad luck >&2; exit 3' --stop KILL -- sleep 4714
expect_status 1
expect_in output 'Error: system: the load ended with exit status 3: bad luck.'
pgrep -f 'sleep 4714' && fail 'the server is still there'
run "$SLUICE" compare --runs 1 --warmup 0 --with system --ready false --load true -- sh -c 'echo no port >&2; exit 5'
expect_status 1
expect_in output 'ended before it was ready by exit status 5: no port'
run "$SLUICE" compare --runs 1 --warmup 0 --timeout 0.5 --with system --ready false --load true -- sleep 4715
expect_status 1
expect_in output 'took too long'
pgrep -f 'sleep 4715' && fail 'the server that was never ready is still there'
run "$SLUICE" compare --runs 1 --warmup 0 --with system --load 'echo nothing' --metric 'took ([0-9]+)' -- sleep 4716
expect_status 1
expect_in output 'nothing that --metric matches'
pgrep -f 'sleep 4716' && fail 'the server is still there after the load'
# TERM, when no signal is named, and a server that dies of it is well.
run "$SLUICE" compare --runs 1 --warmup 0 --with system --load true -- sleep 4717
expect_status 0
finish
