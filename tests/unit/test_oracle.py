"""test_oracle.py: the oracle's own rules, against values worked out by hand."""

import datetime
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))

import oracle_file  # noqa: E402
import oracle_server  # noqa: E402
import oracle_values as values  # noqa: E402


class Values(unittest.TestCase):
    def same(self, got, expected):
        self.assertEqual(type(got), type(expected))
        self.assertEqual(repr(got), repr(expected))

    def test_numeric(self):
        for field, expected in [
                (b"0", 0), (b"0.000", 0), (b"1.50", 1.5), (b"-3.00", -3), (b"0.1", 0.1),
                (b"9223372036854775807", 2 ** 63 - 1), (b"-9223372036854775808", -2 ** 63),
                (b"9223372036854775808", "9223372036854775808"),
                (b"100000000000000000000", 1e20), (b"12345678901234567.5", "12345678901234567.5"),
                (b"1.1234567890123456789000", "1.1234567890123456789"),
                (b"NaN", "NaN"), (b"Infinity", float("inf")), (b"-Infinity", float("-inf")),
                (b"1" + b"0" * 400 + b".5", "1" + "0" * 400 + ".5")]:
            self.same(values.numeric(field), expected)

    def test_float(self):
        self.same(values.number(b"-0"), -0.0)
        self.same(values.number(b"1"), 1.0)
        self.same(values.number(b"0.1"), 0.1)
        self.same(values.number(b"NaN"), "NaN")
        self.same(values.number(b"-Infinity"), float("-inf"))

    def test_moments(self):
        for field, expected in [
                (b"1970-01-01", 0), (b"2000-02-29", 951782400000), (b"0001-01-01", -62135596800000),
                (b"0044-03-15 BC", -63517824000000), (b"1969-12-31 23:59:59.999", -1),
                (b"2024-01-02 03:04:05.678901", 1704164645678.901),
                (b"2024-01-02 03:04:05.678901+00", 1704164645678.901),
                (b"2024-01-02 03:04:05+00", 1704164645000), (b"infinity", float("inf")),
                (b"-infinity", float("-inf")), (b"5874897-12-31", 185331706992000000)]:
            self.same(values.moment(field), expected)
        self.same(values.moment(b"294276-12-31 23:59:59.999999"), "294276-12-31 23:59:59.999999")
        self.same(values.moment(b"294276-12-31 23:59:59.999"), 9224318015999999)

    def test_days_agree_with_the_calendar(self):
        day = datetime.date(1, 1, 1)
        while day.year < 9990:
            self.assertEqual(values.days_since_epoch(day.year, day.month, day.day),
                             (day - datetime.date(1970, 1, 1)).days)
            day += datetime.timedelta(days=997)

    def test_clock(self):
        self.same(values.clock(b"24:00:00"), 86400000)
        self.same(values.clock(b"00:00:00.000001"), 0.001)
        self.same(values.clock(b"12:34:56.5"), 45296500)

    def test_plain(self):
        self.same(values.boolean(b"t"), 1)
        self.same(values.blob(b"\\x00ff"), b"\x00\xff")
        self.same(values.blob(b"\\x"), b"")


class Lines(unittest.TestCase):
    def test_unescape(self):
        for field, expected in [
                (rb"a\tb", b"a\tb"), (rb"\\N", rb"\N"), (rb"\\\\", rb"\\"), (rb"x\\n", rb"x\n"),
                (rb"\n\r\b\f\v", b"\n\r\b\f\v"), (rb"\\\n", b"\\\n"), (rb"a\\", b"a\\")]:
            self.assertEqual(oracle_server.unescape(field), expected)

    def test_digest_tells_storage_classes(self):
        forms = [1, 1.0, "1", b"1", None, 0, 0.0, -0.0, "", b"", True]
        self.assertEqual(len({oracle_file.digest((f, "x" * 40)) for f in forms}), len(forms))


class Thing:
    def __init__(self, number, name):
        self.number, self.plain, self.sqlite_name = number, name, None


class Names(unittest.TestCase):
    def names(self, *pairs):
        things = [Thing(*pair) for pair in pairs]
        values.assign(things, lambda t: t.number, lambda t: t.plain, lambda n: n.startswith("sqlite_"))
        return [t.sqlite_name for t in things]

    def test_collisions(self):
        self.assertEqual(self.names((20, "A"), (10, "a"), (30, "b")), ["A~14", "a", "b"])
        self.assertEqual(self.names((10, "É"), (20, "é")), ["É", "é"])
        self.assertEqual(self.names((255, "sqlite_x")), ["~sqlite_x~ff"])


if __name__ == "__main__":
    unittest.main()
