"""oracle_file.py: the replica's side of the oracle: what the SQLite file holds.

Values come as Python's sqlite3 gives them (int, float, str, bytes, None),
which is SQLite's storage class.
"""

import hashlib
import marshal
import os
import sqlite3
import time
import urllib.parse

OWN = ("_zero.", "_sluice.", "sqlite_")


class Unreadable(Exception):
    pass


def digest(row):
    """Tells 1 from 1.0 and 0.0 from -0.0, which == does not."""
    data = marshal.dumps(row, 2)
    return data if len(data) <= 16 else hashlib.blake2b(data, digest_size=16).digest()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Replica:
    """One read transaction over the file."""

    def __init__(self, path, only=None):
        self.only = only
        self.path = path

    def __enter__(self):
        if not os.path.exists(self.path):
            raise Unreadable(f"no file {self.path}")
        uri = "file:" + urllib.parse.quote(os.path.abspath(self.path)) + "?mode=ro"
        try:
            self.db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
            self.db.execute("BEGIN")
            self.db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error as error:
            raise Unreadable(f"{self.path}: {error}") from error
        return self

    def __exit__(self, *_):
        self.db.close()

    def tables(self):
        names = {name for (name,) in self.db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'")}
        names = {n for n in names if not n.startswith(OWN)}
        return names & set(self.only) if self.only else names

    def columns(self, table):
        """None if there is no such table."""
        names = {row[1] for row in self.db.execute(f"PRAGMA table_xinfo({quoted(table)})")}
        return names or None

    def rows(self, table):
        # a table without columns still has rows; COPY gives an empty line each
        names = ", ".join(quoted(c.sqlite_name) for c in table.columns) or "1"
        try:
            for row in self.db.execute(f"SELECT {names} FROM {quoted(table.sqlite_name)}"):
                yield row if table.columns else ()
        except sqlite3.Error as error:
            raise Unreadable(f"table {table.sqlite_name}: {error}") from error

    def integrity(self):
        found = [line for (line,) in self.db.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else ["integrity_check: " + line for line in found]


def wait_position(path, position, end):
    """Until the file says that it has seen everything before a WAL position.

    Only to save comparisons in vain: it ends without a complaint at the
    deadline, or when the file has no such note.
    """
    while time.monotonic() < end:
        try:
            with Replica(path) as replica:
                seen = seen_position(replica.db)
        except Unreadable:
            seen = 0
        if seen is None or seen >= position:
            return
        time.sleep(0.05)


def seen_position(db):
    """The greater of stateVersion's LSN and the bare position; None: not known."""
    try:
        (text,) = db.execute('SELECT stateVersion FROM "_zero.replicationState"').fetchone()
        (seen,) = db.execute('SELECT seen FROM "_sluice.state"').fetchone()
    except (sqlite3.Error, TypeError):
        return None
    digits = text.split(".")[0]
    return max(int(digits[1:], 36), int(seen or 0))
