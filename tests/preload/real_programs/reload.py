"""Fetches pages from an nginx over and over while it loads its settings again, and prints what must be the same each time.

Usage: reload.py PID SOCKET. Open it with workload_nginx of real_workloads_servers.sh.
"""

import collections
import gzip
import hashlib
import os
import signal
import socket
import sys
import threading
import time

CLIENTS, FETCHES, RELOADS = 4, 60, 6


def fetch(path, number):
    """Returns what identifies an answer: its status and a digest of the page."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        encoding = "gzip" if number % 2 else "identity"
        kind = ("apple", "pear", "")[number % 3]
        connection.sendall(f"GET /page.html?kind={kind} HTTP/1.0\r\nHost: x\r\nAccept-Encoding: {encoding}\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"Content-Encoding: gzip" in head:
        body = gzip.decompress(body)
    return f"{head.split(bytes([13, 10]))[0].decode()} {kind} {hashlib.sha256(body).hexdigest()}"


def children_of(parent):
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                state, ppid = file.read().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(ppid) == parent and state != "Z":
            found.add(int(name))
    return found


def wait_for(what, condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"reload.py: {what}")
        time.sleep(0.005)


def main():
    server, path = int(sys.argv[1]), sys.argv[2]
    answers, seen = collections.Counter(), set()
    wait_for("nginx has no two workers", lambda: len(children_of(server)) == 2)
    done = 0
    lock = threading.Lock()

    def client(first):
        nonlocal done
        for number in range(first, first + FETCHES):
            answer = fetch(path, number)
            with lock:
                answers[answer] += 1
                done += 1

    threads = [threading.Thread(target=client, args=(1000 * n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for reload in range(1, RELOADS + 1):
        wait_for("the answers stop", lambda: done >= CLIENTS * FETCHES * reload // (RELOADS + 2))
        before = children_of(server)
        seen |= before
        os.kill(server, signal.SIGHUP)
        wait_for("no new workers come", lambda: len(children_of(server) - before) >= 2)
    for thread in threads:
        thread.join()
    wait_for("old workers stay", lambda: len(children_of(server)) == 2 and not children_of(server) & seen)
    for answer, count in sorted(answers.items()):
        print(count, answer)


main()
