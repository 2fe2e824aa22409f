#!/usr/bin/env python3
"""layout.py: rules of the source tree that a compiler does not check.

Out: one line for each breach, "file:line: what"; exit code 1 if there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A stage knows its neighbours only.  What a directory of pg_ext may include:
# whole directories, or single headers of one.  All may include common.
EDGES = {
    "common": {"ring/ring.h"},  # shared memory is laid out in one place
    "ring": set(),
    "encode": set(),
    "decode": {"encode", "ring", "store/state.h", "store/changelog.h"},
    "store": {"ring", "decode/schema.h"},
    "backfill": {"encode", "ring", "decode/schema.h", "store/state.h"},
    "send": {"ring", "store/changelog.h", "store/state.h", "backfill/snapshot.h", "backfill/scan.h",
             "encode", "decode/schema.h"},
    "launch": set(),
    "admin": {"store", "decode/schema.h"},
}
# compiled into the agent too: no server headers
PURE = re.compile(r"pg_ext/common/(watermark|buffer|spec|wire)\w*\.[ch]$")

LINES = 500
FUNCTION = 80


def files(*patterns):
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))


def name(path):
    return str(path.relative_to(ROOT))


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match:
            yield number, match.group(1)


def edges(report):
    owners = {}
    for path in files("pg_ext/*/*.h"):
        if path.name in owners:
            report(path, 1, f"a second header of the name {path.name}")
        owners[path.name] = path
    for path in files("pg_ext/*/*.[ch]"):
        directory = path.parent.name
        if directory not in EDGES:
            report(path, 1, f"directory {directory} has no rule in tests/lint/layout.py")
            continue
        for number, header in includes(path):
            owner = owners.get(header)  # those of the server have a directory
            if owner is None or owner.parent.name in (directory, "common"):
                continue
            target = f"{owner.parent.name}/{owner.name}"
            if owner.parent.name not in EDGES[directory] and target not in EDGES[directory]:
                report(path, number, f"{directory} may not include {target}")
    for path in files("pg_ext/common/*.[ch]"):
        if not PURE.search(name(path)):
            continue
        for number, header in includes(path):
            if not PURE.search("pg_ext/common/" + header):
                report(path, number, f"is compiled into the agent, may not include {header}")
    for path in files("agent/*.[ch]"):
        for number, header in includes(path):
            own = (path.parent / header).exists()
            if not own and not PURE.search("pg_ext/common/" + header):
                report(path, number, f"the agent may not include {header}")


def code(report):
    for path in files("pg_ext/**/*.[ch]", "agent/*.[ch]", "bench/**/*.[ch]"):
        lines = path.read_text().splitlines()
        if not lines or not lines[0].startswith("/*"):
            report(path, 1, "has no head comment")
        elif path.parent.name != "unit" and not any(path.name in line for line in lines[:4]):
            report(path, 2, "its head comment does not name it")
        start = None
        for number, line in enumerate(lines, 1):
            if "PG_VERSION_NUM" in line and not path.name.startswith("compat."):
                report(path, number, "PG_VERSION_NUM outside common/compat")
            if re.search(r"\b(pg_usleep|usleep|nanosleep|sleep)\s*\(", line):
                report(path, number, "sleeps instead of waiting for something")
            if re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", line):
                report(path, number, "has something left to do")
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start - 1 > FUNCTION:
                    report(path, start, f"a function of {number - start - 1} lines")
                start = None


def length(report):
    for path in files("pg_ext/**/*.[ch]", "pg_ext/*.sql", "agent/*.[ch]", "tests/**/*.[ch]", "tests/**/*.p[lmy]",
                      "bench/**/*.*", "tests/lib/*"):
        if path.is_file() and path.suffix not in (".sql", ".md"):
            count = len(path.read_text(errors="replace").splitlines())
            if count > LINES:
                report(path, count, f"{count} lines, more than {LINES}")


def procedures(report):
    """Entry points that commit: SECURITY DEFINER or SET makes them atomic."""
    for path in files("pg_ext/*.sql"):
        text = path.read_text()
        for match in re.finditer(r"CREATE\s+(OR\s+REPLACE\s+)?PROCEDURE\s+(\S+?)\s*\(.*?;", text, re.I | re.S):
            line = text.count("\n", 0, match.start()) + 1
            if re.search(r"SECURITY\s+DEFINER", match.group(0), re.I):
                report(path, line, f"{match.group(2)}: SECURITY DEFINER in a procedure that commits")
            if re.search(r"^\s*SET\s", match.group(0), re.I | re.M):
                report(path, line, f"{match.group(2)}: SET in a procedure that commits")


def scheduled(report):
    """make check runs by name pattern: every test must have such a name."""
    rules = [("tests/tap/*", r"\d{3}_\w+\.pl$"), ("tests/pgtap/*", r"\w+\.sql$"),
             ("tests/unit/*", r"(test_\w+\.(c|py)|\w+\.h)$"), ("sql/*", r"\w+\.sql$"),
             ("expected/*", r"\w+\.out$"), ("tests/isolation/specs/*", r"\w+\.spec$")]
    for pattern, rule in rules:
        for path in files(pattern):
            if path.is_file() and not re.match(rule, path.name):
                report(path, 1, "is run by nothing: its name does not fit")
    for source, result in [("sql/*.sql", "expected"), ("tests/isolation/specs/*.spec", "tests/isolation/expected")]:
        for path in files(source):
            if not (ROOT / result / (path.stem + ".out")).exists():
                report(path, 1, f"has no expected output in {result}")
    for path in files("expected/*.out"):
        if not (ROOT / "sql" / (re.sub(r"_\d+$", "", path.stem) + ".sql")).exists():
            report(path, 1, "belongs to no test")
    for path in files("tests/tap/*.pl", "tests/pgtap/*.sql", "sql/*.sql"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "rand" not in line and re.search(r"^\s*(SELECT|PERFORM)\s+pg_sleep\(|^\s*(usleep|sleep)\b", line, re.I):
                report(path, number, "sleeps instead of waiting for a condition")


def main():
    found = []
    for rule in (edges, code, length, procedures, scheduled):
        rule(lambda path, line, what: found.append(f"{name(path)}:{line}: {what}"))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
