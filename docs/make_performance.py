"""Make docs/performance.json, the figures of docs/performance.md, from new runs.

docs/performance.toml defines them, and has the texts of the page.

make performance                                     all of it, in less than 25 minutes if idle
python docs/make_performance.py "Fan-out" ...        these tables, on the machine of the others
python docs/make_performance.py --smallest --into F  the smallest test of all parts, into F

The file is written after every table: after an interruption, name the missing tables.
"""

import argparse
import os
import platform
import re
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec

from docs.tables import markdown
from serverless_bench import __version__
from serverless_bench.base.clock import monotonic_ns, utc_stamp, wall_ns
from serverless_bench.base.process import cpus
from serverless_bench.base.units import NS_PER_S

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "docs" / "performance.json"
TEXTS: Final = FILE.with_suffix(".toml")
LIBRARIES: Final = (
    *("awscrt", "boto3", "botocore", "cryptography", "minio", "numpy", "obstore", "s3dlio"),
    "s3torchconnectorclient",
)
UNKNOWN: Final = "n/a"
"""Replaces a figure in a sentence that its table does not have."""
_FIGURE: Final = re.compile(r"\{(1000/)?([^|{}]+)\|([^|{}]+)\}")
Row = Mapping[str, str]


class Table(NamedTuple):
    """One table of the page; docs/performance.toml explains its parts."""

    title: str
    command: str
    sentence: str
    about: str = ""
    smallest: str = ""


class Measured(msgspec.Struct, frozen=True):
    """One measured table."""

    sentence: str
    made: str
    """Command, time and load."""
    rows: Sequence[Sequence[str]]


class Figures(msgspec.Struct, frozen=True):
    """The file."""

    machine: Mapping[str, str]
    tables: Mapping[str, Measured]
    """Tables by title."""


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the file; return 1 if a sentence lacks a figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("titles", nargs="*", metavar="TITLE")
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--into", type=Path, default=FILE)
    asked = parser.parse_args(arguments)
    tables, machine, kept = texts(), dict(_facts()), dict[str, Measured]()
    if unknown := set(asked.titles) - {table.title for table in tables}:
        parser.error(f"no table is called {', '.join(sorted(unknown))}")
    if asked.smallest and asked.into == FILE:
        parser.error("--smallest measures nothing: name another file with --into")
    if asked.titles:
        before = recorded(asked.into)
        kept = dict(before.tables)
        if before.machine != machine:
            parser.error("the other tables were made with another machine: make them all")
    for table in tables:
        if not asked.titles or table.title in asked.titles:
            kept[table.title] = measured(table, smallest=asked.smallest)
            ordered = {each.title: kept[each.title] for each in tables if each.title in kept}
            data = msgspec.json.encode(Figures(machine, ordered))
            asked.into.write_bytes(msgspec.json.format(data) + b"\n")
    lacking = [title for title, one in kept.items() if UNKNOWN in one.sentence]
    if lacking and not asked.smallest:
        print(f"a figure is missing: {', '.join(lacking)}", file=sys.stderr)
        return 1
    return 0


def recorded(file: Path = FILE) -> Figures:
    """Return the last measured tables."""
    return msgspec.json.decode(file.read_bytes(), type=Figures)


def made() -> str:
    """Return the machine and the sections of the page as Markdown."""
    figures = recorded()
    return "\n".join(
        [
            markdown([("machine", ""), *figures.machine.items()]),
            *(_section(table, figures.tables[table.title]) for table in texts()),
        ]
    )


def _section(table: Table, one: Measured) -> str:
    text = [one.sentence, *([table.about] if table.about else []), one.made, markdown(one.rows)]
    return f"## {table.title}\n\n" + "\n\n".join(text)


def texts() -> list[Table]:
    """Return the tables of the page, without their figures."""
    data = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
    return [Table(**{name: text.strip() for name, text in one.items()}) for one in data["table"]]


def measured(table: Table, *, smallest: bool) -> Measured:
    """Run the command of a table, and return its figures."""
    words = table.command.split()
    if smallest:
        words = [*(table.smallest.split() or words), "--smallest"]
    load, began_ns = os.getloadavg()[0], monotonic_ns()
    stamp = utc_stamp(wall_ns())
    command = [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:]]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures = rows(done.stdout)
    if missing := columns(table.sentence) - set(figures[0]):
        raise ValueError(f"{table.title}: {table.command} has no column {sorted(missing)}")
    took_s = (monotonic_ns() - began_ns) / NS_PER_S
    print(f"{table.title}: {took_s:.0f} s", flush=True)
    when = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:13]} UTC"
    how = (
        f"`python -m benchmarks.{' '.join(words)}`, {when}, {took_s:.0f} s, load {load:.1f}"
        f" on {cpus()} cores.{spread(figures)}"
    )
    lines = shortened(done.stdout).splitlines()
    del lines[1]
    return Measured(
        sentence=fill_in(table.sentence, figures), made=how, rows=[_cells(line) for line in lines]
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def shortened(table: str) -> str:
    """Return a Markdown table without sizes and threads if all rows have the same.

    The title of the section and the command above the table give them. Rows of a client become
    one row.
    """
    if "| in the harness |" in table:
        table = by_client(table)
    lines = [line.strip("|\n").split("|") for line in table.splitlines()]
    names = [name.strip() for name in lines[0]]
    left = [
        column
        for column, name in enumerate(names)
        if name not in {"KiB", "threads"} or len({line[column] for line in lines[2:]}) > 1
    ]
    return "".join(f"|{'|'.join(line[column] for column in left)}|\n" for line in lines)


def by_client(table: str) -> str:
    """Return a table of ``benchmarks.clients`` with a row per client and a column per request.

    A cell has the figure in the harness, with that of the bare library in parentheses.
    """
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    names = [name for name in ("KiB", "threads", "client") if name in rows(table)[0]]
    for row in rows(table):
        harness, bare = row["in the harness"], row["bare"]
        cell = f"{harness} ({bare})" if harness else bare
        label = tuple(row[name] for name in names)
        cells.setdefault(label, {})[f"{row['scheme']} {row['operation']}"] = cell
    requests = list(dict.fromkeys(request for row in cells.values() for request in row))
    lines = [
        (*names, *requests),
        (*("---" if name == "client" else "---:" for name in names), *("---:" for _ in requests)),
        *(
            (*label, *(row.get(request, "") for request in requests))
            for label, row in cells.items()
        ),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def spread(figures: Sequence[Row]) -> str:
    """Return the spread of the rounds of ``benchmarks.clients``; empty for other tables."""
    shares = [
        (float(highest) - float(lowest)) / float(row["in the harness"])
        for row in figures
        if row.get("in the harness")
        for lowest, highest in [row["lowest to highest"].split(" to ")]
    ]
    if not shares:
        return ""
    return (
        f" Lowest and highest round differ by {median(shares):.0%} of a figure in the harness"
        f" (median of the table; at most {max(shares):.0%})."
    )


def rows(table: str) -> list[Row]:
    """Return the rows of a Markdown table, cells by column."""
    cells = [_cells(line) for line in table.splitlines() if line.startswith("|")]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def fill_in(sentence: str, found: Sequence[Row]) -> str:
    """Return a sentence with figures of its table."""

    def figure(asked: re.Match[str]) -> str:
        words = set(asked[2].split())
        cells = [
            row.get(asked[3], "") for row in found if words <= set(" ".join(row.values()).split())
        ]
        if not cells or not cells[-1]:
            return UNKNOWN
        return f"{1000 / float(cells[-1]):,.0f}" if asked[1] else cells[-1]

    return _FIGURE.sub(figure, sentence)


def columns(sentence: str) -> set[str]:
    """Return the columns with the figures of a sentence."""
    return {found[2] for found in _FIGURE.findall(sentence)}


def _facts() -> Iterator[tuple[str, str]]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    yield "CPU", f"{_model()}, {cpus()} cores"
    yield "memory", f"{memory:.0f} GiB"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "Python", f"{platform.python_version()}, {ssl.OPENSSL_VERSION}"
    yield "sbench", __version__
    yield "libraries", ", ".join(f"{name} {version(name)}" for name in LIBRARIES)


def _model() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
