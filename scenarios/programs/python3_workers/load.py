"""Loads the measured server: load.py SOCKET BURSTS. Each burst is a number of requests at several connections, and a rest
follows. Prints how many requests were answered per second, the rests not counted. Open it to change the bursts."""

import concurrent.futures
import socket
import sys
import time

CONNECTIONS, REQUESTS, REST_SECONDS = 3, 12, 1.2


def ask(path, first):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        with connection.makefile("rw") as stream:
            for seed in range(first, first + REQUESTS):
                stream.write(f"{seed}\n")
                stream.flush()
                if len(stream.readline()) != 65:
                    sys.exit("the server gave no answer")


def main():
    path, bursts = sys.argv[1], int(sys.argv[2])
    if bursts == 0:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
        return
    busy = 0
    for burst in range(bursts):
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            firsts = [(burst * CONNECTIONS + number) * REQUESTS for number in range(CONNECTIONS)]
            list(pool.map(lambda first: ask(path, first), firsts))
        busy += time.monotonic() - begun
        time.sleep(REST_SECONDS)
    print(f"{bursts * CONNECTIONS * REQUESTS / busy:.2f} requests per second")


main()
