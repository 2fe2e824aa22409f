"""oracle_server.py: the server's side of the oracle: what is published, and
the rows in PostgreSQL's text form.

Uses psql only.  Everything is read under settings of its own, whatever the
role, the database or the environment say.
"""

import json
import os
import subprocess

import oracle_values

SETTINGS = {
    "datestyle": "ISO, MDY", "intervalstyle": "postgres", "timezone": "UTC", "bytea_output": "hex",
    "extra_float_digits": "1", "lc_monetary": "C", "lc_numeric": "C", "xmloption": "content",
    "search_path": "pg_catalog", "row_security": "off", "statement_timeout": "0",
    "client_min_messages": "warning", "synchronize_seqscans": "off",
}

# Every published table with its columns; filters of several publications are
# joined by OR, a publication without one lifts them all.
TABLES = r"""
WITH pubs AS (
    SELECT p.oid, p.pubname FROM pg_publication p WHERE p.pubname = ANY (%(publications)s)
), published AS (
    SELECT t.schemaname, t.tablename, c.oid AS relid, c.relkind,
           bool_or(t.rowfilter IS NULL) AS whole,
           string_agg('(' || t.rowfilter || ')', ' OR ') AS filter,
           bool_or(r.prattrs IS NULL) AS every_column,
           array_agg(r.prattrs::int2[]::text) AS lists
    FROM pubs p
    JOIN pg_publication_tables t ON t.pubname = p.pubname
    JOIN pg_namespace n ON n.nspname = t.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
    LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid
    WHERE t.schemaname <> 'sluice' AND t.schemaname NOT LIKE 'cdc\_%%'
    GROUP BY 1, 2, 3, 4
)
SELECT json_build_object(
    'schema', t.schemaname, 'name', t.tablename, 'oid', t.relid::int8,
    'partitioned', t.relkind = 'p',
    'filter', CASE WHEN NOT t.whole THEN t.filter END,
    'columns', (
        SELECT json_agg(json_build_object(
            'attnum', a.attnum, 'name', a.attname, 'type', b.typname, 'kind', b.typtype,
            'schema', bn.nspname,
            'array', b.typsubscript = 'array_subscript_handler'::regproc AND b.typelem <> 0
                AND b.oid NOT IN ('int2vector'::regtype, 'oidvector'::regtype),
            'element_cast', (SELECT count(*) FROM pg_cast pc WHERE pc.castsource = b.typelem
                             AND pc.casttarget = 'json'::regtype AND pc.oid >= 16384)
            ) ORDER BY a.attnum)
        FROM pg_attribute a
        CROSS JOIN LATERAL (
            WITH RECURSIVE base AS (
                SELECT ty.oid, ty.typtype, ty.typbasetype FROM pg_type ty WHERE ty.oid = a.atttypid
                UNION ALL
                SELECT ty.oid, ty.typtype, ty.typbasetype FROM pg_type ty
                JOIN base ON ty.oid = base.typbasetype AND base.typtype = 'd')
            SELECT base.oid FROM base WHERE base.typtype <> 'd') AS found
        JOIN pg_type b ON b.oid = found.oid
        JOIN pg_namespace bn ON bn.oid = b.typnamespace
        WHERE a.attrelid = t.relid AND a.attnum > 0 AND NOT a.attisdropped
          AND (t.every_column OR EXISTS (SELECT FROM unnest(t.lists) AS l(list)
                                         WHERE a.attnum = ANY (l.list::int2[])))),
    'key', (
        SELECT json_agg(k.attnum ORDER BY k.place) FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
        WHERE i.indrelid = t.relid AND i.indisprimary))
FROM published t ORDER BY t.relid
"""

ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class Failure(Exception):
    pass


def literal(text):
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def identifier(name):
    return '"' + name.replace('"', '""') + '"'


class Column:
    def __init__(self, note, timestamps, numerics):
        self.attnum = note["attnum"]
        self.name = note["name"]
        self.sqlite_name = None
        self.is_array = note["array"]
        self.element_is_text = note["element_cast"] > 0
        self.convert = oracle_values.converter(note, timestamps, numerics)

    def expression(self):
        """What COPY selects: an array of plain bounds as to_json gives it."""
        name = identifier(self.name)
        if not self.is_array:
            return name
        value = f"{name}::text[]" if self.element_is_text else name
        return f"CASE WHEN {name}::text LIKE '[%' THEN {name}::text ELSE to_json({value})::text END"


class Table:
    def __init__(self, note, timestamps, numerics):
        self.oid = note["oid"]
        self.schema = note["schema"]
        self.name = note["name"]
        self.filter = note["filter"]
        self.partitioned = note["partitioned"]
        self.sqlite_name = None
        self.columns = [Column(c, timestamps, numerics) for c in note["columns"] or []]
        places = {c.attnum: i for i, c in enumerate(self.columns)}
        self.key = [places[k] for k in note["key"] or [] if k in places]

    def key_of(self, row):
        return tuple(row[i] for i in self.key)


class Server:
    def __init__(self, upstream, shard, publications=None):
        self.upstream = upstream
        self.shard = shard
        self.publications = publications
        self.environment = dict(os.environ, PGCLIENTENCODING="UTF8", PGAPPNAME="oracle")
        self.environment["PGOPTIONS"] = " ".join(
            "-c " + f"{name}={value}".replace(" ", "\\ ") for name, value in SETTINGS.items())
        self.timestamps, self.numerics = "epoch_ms", "exact"

    def command(self, sql):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.upstream, "-c", sql]

    def query(self, sql):
        done = subprocess.run(self.command(sql), env=self.environment, capture_output=True, check=False)
        if done.returncode != 0:
            raise Failure(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().splitlines()

    def flush_position(self):
        (text,) = self.query("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
        return int(text)

    def read_shard(self):
        shard = literal(self.shard)
        lines = self.query(f"SELECT to_json(s) FROM sluice.shards s WHERE name = {shard}")
        if not lines:
            raise Failure(f"no shard {self.shard}")
        note = json.loads(lines[0])
        options = note.get("options") or {}
        self.timestamps = options.get("timestamps", note.get("timestamps")) or "epoch_ms"
        self.numerics = options.get("numerics", note.get("numerics")) or "exact"
        return note["publications"]

    def tables(self):
        publications = self.publications or self.read_shard()
        array = "ARRAY[" + ", ".join(literal(p) for p in publications) + "]::name[]"
        notes = [json.loads(line) for line in self.query(TABLES % {"publications": array})]
        tables = [Table(n, self.timestamps, self.numerics) for n in notes]
        oracle_values.assign_names(tables)
        return tables

    def rows(self, table):
        """Tuples as the file must hold them."""
        columns = ", ".join(c.expression() for c in table.columns)
        source = identifier(table.schema) + "." + identifier(table.name)
        only = "" if table.partitioned else "ONLY "
        where = f" WHERE {table.filter}" if table.filter else ""
        sql = f"COPY (SELECT {columns} FROM {only}{source}{where}) TO STDOUT"
        converters = [c.convert for c in table.columns]
        process = subprocess.Popen(self.command(sql), env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, bufsize=1 << 20)
        with process:
            for line in process.stdout:
                if not converters:
                    yield ()
                    continue
                yield tuple([None if field == b"\\N" else convert(
                    unescape(field) if b"\\" in field else field)
                    for convert, field in zip(converters, line[:-1].split(b"\t"), strict=True)])
            problem = process.stderr.read().decode(errors="replace").strip()
        if process.returncode != 0:
            raise Failure(problem)


def unescape(field):
    parts = field.split(b"\\")
    result = [parts[0]]
    place = 1
    while place < len(parts):
        part = parts[place]
        if part == b"":  # an escaped backslash; the next part is plain
            result.append(b"\\")
            place += 1
            if place < len(parts):
                result.append(parts[place])
        else:
            result.append(ESCAPES.get(part[:1], part[:1]) + part[1:])
        place += 1
    return b"".join(result)
