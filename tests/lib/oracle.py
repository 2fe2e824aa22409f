#!/usr/bin/env python3
"""oracle.py: is a replica file equal to the published tables?

Written apart from the encoder: it reads PostgreSQL's own text output (COPY TO
STDOUT) under pinned settings, maps it to what the file must hold by rules of
its own (oracle_values.py) and compares whole rows, storage class included.

In: a connection string, a shard, a replica file.  Out: the differences; exit
code 0 equal, 1 different, 2 cannot compare.

The tables must be quiet.  The replica may lag: as long as there are
differences it looks again until the deadline.
"""

import argparse
import sys
import time

import oracle_file
import oracle_server

LIMIT = 20  # differences printed for a table


def compare_table(server, replica, table, report):
    """Rows as counted hashes first; what differs is looked at in a second pass."""
    counts = {}
    expected = 0
    for row in server.rows(table):
        digest = oracle_file.digest(row)
        counts[digest] = counts.get(digest, 0) + 1
        expected += 1
    found = 0
    for row in replica.rows(table):
        digest = oracle_file.digest(row)
        left = counts.get(digest, 0) - 1
        if left:
            counts[digest] = left
        else:
            del counts[digest]
        found += 1
    if not counts:
        return expected

    report(f"table {table.sqlite_name}: {expected} rows expected, {found} found")
    missing = pick(server.rows(table), {d: n for d, n in counts.items() if n > 0})
    surplus = pick(replica.rows(table), {d: -n for d, n in counts.items() if n < 0})
    explain(table, missing, surplus, report)
    return expected


def pick(rows, wanted):
    picked = []
    for row in rows:
        digest = oracle_file.digest(row)
        if wanted.get(digest, 0) > 0:
            wanted[digest] -= 1
            picked.append(row)
    return picked


def explain(table, missing, surplus, report):
    """Pairs rows of the same key, so that the column is named."""
    shown = 0
    by_key = {}
    for row in surplus:
        by_key.setdefault(table.key_of(row), []).append(row)
    for row in missing:
        partners = by_key.get(table.key_of(row)) if table.key else None
        if shown < LIMIT:
            if partners:
                other = partners.pop()
                for column, want, have in zip(table.columns, row, other):
                    if oracle_file.digest((want,)) != oracle_file.digest((have,)):
                        report(f"  key {table.key_of(row)!r} column {column.name}: "
                               f"expected {short(want)}, found {short(have)}")
            else:
                report(f"  missing: {short(row)}")
        elif partners:
            partners.pop()
        shown += 1
    for rows in by_key.values():
        for row in rows:
            if shown < LIMIT:
                report(f"  not upstream: {short(row)}")
            shown += 1
    if shown > LIMIT:
        report(f"  … {shown - LIMIT} more")


def short(value):
    if isinstance(value, tuple):
        text = "(" + ", ".join(short(v) for v in value) + ")"
    else:
        text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 300 else text[:300] + f"… ({len(text)} characters)"


def compare(server, replica, tables):
    """Returns differences (a list of lines) and the number of rows compared."""
    lines = []
    rows = 0
    for name in sorted(replica.tables() - {t.sqlite_name for t in tables}):
        lines.append(f"table {name}: not published, but in the file")
    for table in tables:
        have = replica.columns(table.sqlite_name)
        want = {c.sqlite_name for c in table.columns} | {"_0_version"}
        if have is None:
            lines.append(f"table {table.sqlite_name}: missing")
            continue
        if have != want:
            lines.append(f"table {table.sqlite_name}: columns missing {sorted(want - have)}, "
                         f"not upstream {sorted(have - want)}")
            continue
        rows += compare_table(server, replica, table, lines.append)
    return lines, rows


def attempt(arguments, check_integrity):
    server = oracle_server.Server(arguments.upstream, arguments.shard, arguments.publications)
    tables = server.tables()
    if arguments.table:
        tables = [t for t in tables if t.sqlite_name in arguments.table]
    try:
        with oracle_file.Replica(arguments.replica, arguments.table) as replica:
            lines, rows = compare(server, replica, tables)
            if not lines and check_integrity:
                lines = replica.integrity()
            return lines, rows, len(tables)
    except oracle_file.Unreadable as problem:
        return [str(problem)], 0, len(tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", required=True, help="connection string")
    parser.add_argument("--replica", required=True, help="the SQLite file")
    parser.add_argument("--shard", help="its publications are compared")
    parser.add_argument("--publications", action="append",
                        help="instead of a shard's, may be repeated")
    parser.add_argument("--table", action="append", help="only this one (its name in the file)")
    parser.add_argument("--deadline", type=float, default=30, help="seconds to wait until equal")
    parser.add_argument("--no-integrity", action="store_true", help="skip PRAGMA integrity_check")
    arguments = parser.parse_args()
    if not arguments.shard and not arguments.publications:
        parser.error("--shard or --publications is needed")

    end = time.monotonic() + arguments.deadline
    server = oracle_server.Server(arguments.upstream, arguments.shard, arguments.publications)
    try:
        oracle_file.wait_position(arguments.replica, server.flush_position(), end)
        pause = 0.1
        while True:
            lines, rows, tables = attempt(arguments, not arguments.no_integrity)
            if not lines:
                print(f"equal: {tables} tables, {rows} rows")
                return 0
            if time.monotonic() > end:
                break
            time.sleep(pause)
            pause = min(pause * 2, 2)
    except oracle_server.Failure as failure:
        print(f"oracle: {failure}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 1


if __name__ == "__main__":
    sys.exit(main())
