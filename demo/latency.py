#!/usr/bin/env python3
"""latency.py: how long after its commit a row can be read from the file.

Commits a row through a psql session, then looks into the file until it is
there; the clock starts when the commit has come back.  A row seen before
that counts as 0.  Prints "p50 p90 p99 max count", in ms.
"""

import argparse
import sqlite3
import subprocess
import sys
import time
import urllib.parse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--replica", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two rows")
    parser.add_argument("--deadline", type=float, default=30, help="give up on a row after this")
    arguments = parser.parse_args()

    psql = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", arguments.upstream],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    file = sqlite3.connect("file:" + urllib.parse.quote(arguments.replica) + "?mode=ro", uri=True,
                           isolation_level=None)

    def run(sql):
        psql.stdin.write(sql + "\n\\echo done\n")
        psql.stdin.flush()
        line = psql.stdout.readline()
        if line.strip() != "done":
            sys.exit(f"latency: psql ended: {line}")

    times = []
    run("DELETE FROM heartbeats;")
    end = time.monotonic() + arguments.seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        run(f"INSERT INTO heartbeats (id) VALUES ({number});")
        committed = time.monotonic()
        while not file.execute("SELECT 1 FROM heartbeats WHERE id = ?", (number,)).fetchone():
            if time.monotonic() - committed > arguments.deadline:
                sys.exit(f"latency: row {number} is not in the file after {arguments.deadline} s")
            time.sleep(0.0001)
        times.append((time.monotonic() - committed) * 1000)
        time.sleep(arguments.pause)

    psql.stdin.close()
    psql.wait()
    times.sort()
    marks = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.9, 0.99)]
    print(*(f"{value:.2f}" for value in marks + [times[-1]]), len(times))


if __name__ == "__main__":
    main()
