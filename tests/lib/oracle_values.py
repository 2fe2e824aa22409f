"""oracle_values.py: PostgreSQL's text form of a value to what a replica must
hold, and PostgreSQL's names to the replica's.

The rules are those of docs/types.md, written down a second time on purpose;
nothing here is shared with the encoder.
"""

import decimal
import re

INT64 = range(-(1 << 63), 1 << 63)
DAY_MS = 86400000
MICROSECONDS = 1000

decimal.getcontext().prec = 200000
decimal.getcontext().Emax = decimal.MAX_EMAX
decimal.getcontext().Emin = decimal.MIN_EMIN

MOMENT = re.compile(r"(\d+)-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:\+00)?)?( BC)?$")
CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")


def text(field):
    return field.decode()


def boolean(field):
    return {b"t": 1, b"f": 0}[field]


def blob(field):
    assert field[:2] == b"\\x", field[:10]
    return bytes.fromhex(field[2:].decode())


def number(field):
    """A float: NaN has no form in SQLite and is text."""
    value = float(field)
    return "NaN" if value != value else value


def numeric(field):
    """By value: integer, else a double that prints the same digits, else text."""
    if field in (b"NaN", b"Infinity", b"-Infinity"):
        return number(field)
    exact = decimal.Decimal(field.decode())
    if exact == exact.to_integral_value() and int(exact) in INT64:
        return int(exact)
    near = float(field)
    if near not in (float("inf"), float("-inf")) and decimal.Decimal(repr(near)) == exact:
        return near
    plain = f"{exact:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def days_since_epoch(year, month, day):
    """Proleptic Gregorian; year 0 is 1 BC."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def milliseconds(microseconds):
    """None: a double of milliseconds would not give the microseconds back."""
    if microseconds % MICROSECONDS == 0:
        return microseconds // MICROSECONDS
    near = microseconds / MICROSECONDS
    return near if round(near * MICROSECONDS) == microseconds else None


def moment(field):
    """date, timestamp, timestamp with time zone (at UTC)."""
    if field in (b"infinity", b"-infinity"):
        return float(field)
    plain = field.decode()
    year, month, day, hour, minute, second, fraction, before_christ = MOMENT.match(plain).groups()
    year = 1 - int(year) if before_christ else int(year)
    clock = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    total = days_since_epoch(year, int(month), int(day)) * DAY_MS * MICROSECONDS
    total += clock * 1000000 + int((fraction or "").ljust(6, "0"))
    value = milliseconds(total)
    return plain if value is None else value


def clock(field):
    hour, minute, second, fraction = CLOCK.match(field.decode()).groups()
    total = ((int(hour) * 60 + int(minute)) * 60 + int(second)) * 1000000
    return milliseconds(total + int((fraction or "").ljust(6, "0")))


CONVERTERS = {
    "bool": boolean, "int2": int, "int4": int, "int8": int, "oid": int,
    "float4": number, "float8": number, "numeric": numeric, "bytea": blob,
    "date": moment, "timestamp": moment, "timestamptz": moment, "time": clock,
}


def converter(note, timestamps, numerics):
    """For a column note of oracle_server: the base type's rule."""
    if note["array"] or note["schema"] != "pg_catalog":
        return text
    if numerics == "double" and note["type"] == "numeric":
        return number
    if timestamps == "text" and note["type"] in ("date", "timestamp", "timestamptz", "time"):
        return text
    return CONVERTERS.get(note["type"], text)


# ---- names ----

def fold(name):
    """SQLite's own notion of the same name: ASCII case."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name)


def assign(things, number_of, plain_of, reserved):
    """The lowest number keeps a plain name; others, and reserved ones, get '~' and it in hex.
    A reserved prefix gets a '~' before it, too: SQLite takes no such name."""
    taken = set()
    for thing in sorted(things, key=number_of):
        plain = plain_of(thing)
        if fold(plain) in taken or reserved(fold(plain)):
            before = "~" if reserved(fold(plain)) and fold(plain) != "_0_version" else ""
            thing.sqlite_name = f"{before}{plain}~{number_of(thing):x}"
        else:
            thing.sqlite_name = plain
        taken.add(fold(thing.sqlite_name))


def assign_names(tables):
    assign(tables, lambda t: t.oid,
           lambda t: t.name if t.schema == "public" else f"{t.schema}.{t.name}",
           lambda name: name.startswith(("sqlite_", "_zero.", "_sluice.")))
    for table in tables:
        assign(table.columns, lambda c: c.attnum, lambda c: c.name,
               lambda name: name == "_0_version")
