"""Fetches pages from an Apache over and over while it loads its settings and modules again, and prints what must be the same
each time.

Usage: fetch.py PID PORT PATH... Open it with workload_apache of real_workloads_services.sh.
"""

import collections
import hashlib
import http.client
import os
import signal
import sys
import threading
import time
import zlib

CLIENTS, ROUNDS, RESTARTS, TRIES = 4, 9, 3, 4


def fetch(port, path, compressed):
    """As fetch_once. A process of the server that ends for new settings may close a connection that it has just taken."""
    for _ in range(TRIES - 1):
        try:
            return fetch_once(port, path, compressed)
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
    return fetch_once(port, path, compressed)


def fetch_once(port, path, compressed):
    """Returns what identifies an answer: its status and a digest of the page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"} if compressed else {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.getheader("Content-Encoding") == "gzip":
        body = zlib.decompress(body, wbits=31)
    return f"{response.status} {response.getheader('X-Served')} {path} {hashlib.sha256(body).hexdigest()}"


def main():
    server, port, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    answers = collections.Counter()
    lock = threading.Lock()

    def client(number):
        for turn in range(ROUNDS):
            if number == 0 and turn % (ROUNDS // RESTARTS) == 1:
                os.kill(server, signal.SIGUSR1)
            for path in paths:
                answer = fetch(port, path, (number + turn) % 2 == 0)
                with lock:
                    answers[answer] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer, count in sorted(answers.items()):
        print(count, answer)


main()
