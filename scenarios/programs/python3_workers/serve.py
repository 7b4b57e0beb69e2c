"""The measured server: processes that answer requests at a socket. serve.py SOCKET. A request is a number in a line; the
answer is a digest of a document made from it. Open it to change the work of a request."""

import hashlib
import json
import os
import random
import signal
import socket
import sys
import zlib

WORKERS, RECORDS = 3, 1500


def answer(seed):
    """Makes a document, reads it, indexes it and writes it again, as a worker behind a web server does."""
    rng = random.Random(seed)
    records = [
        {
            "id": number,
            "name": f"{rng.choice(('red', 'green', 'blue'))} {rng.randrange(10**6)}",
            "tags": [f"tag{rng.randrange(400)}" for _ in range(rng.randrange(8))],
            "text": "".join(rng.choices("abcdefgh ", k=rng.randrange(60, 400))),
        }
        for number in range(RECORDS)
    ]
    read = json.loads(json.dumps(records))
    index = {}
    for record in read:
        for tag in record["tags"]:
            index.setdefault(tag, []).append(record["name"])
    words = sorted({word for record in read for word in record["text"].split()})
    page = json.dumps({"index": index, "words": words, "records": sorted(read, key=lambda r: r["name"])}).encode()
    return hashlib.sha256(zlib.compress(page, 1)).hexdigest()


def work(listener):
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as stream:
            for line in stream:
                stream.write(answer(int(line)) + "\n")
                stream.flush()


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(16)
    workers = []

    def end(*_):
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        for pid in workers:
            os.waitpid(pid, 0)
        os.unlink(sys.argv[1])
        sys.exit(0)

    for _ in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            work(listener)
        workers.append(pid)
    signal.signal(signal.SIGTERM, end)
    while True:
        signal.pause()


main()
