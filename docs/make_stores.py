"""Make docs/stores.csv, the table of docs/stores.md, from new answers of S3 servers.

make stores

``python docs/make_stores.py moto rclone`` only sends requests to these, and keeps other columns.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the probes are a part of the tests

from docs.tables import markdown, read_rows, write_rows  # noqa: E402
from tests.probes.stores import STORES  # noqa: E402
from tests.probes.table import GROUPS, answers  # noqa: E402

FILE = ROOT / "docs" / "stores.csv"
SAME = "="
"""Replaces an answer that equals the one in S3's reference."""

Answers = Mapping[tuple[str, str], str]
"""Answers by group and request."""


def main() -> None:
    """Send requests to the named servers, or all, and write their answers."""
    kept = dict(recorded()) if sys.argv[1:] else {}
    asked = {store: ask(store) for store in (sys.argv[1:] or STORES)}
    write_rows(FILE, file_rows({store: (kept | asked)[store] for store in STORES}))


def ask(store: str) -> Answers:
    """Start a server, and return its answers."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        STORES[store].start(Path(scratch)) as server,
    ):
        return answers(server)


def table() -> str:
    """Return the answers as Markdown: a table of differences, and a list of the equal ones."""
    columns = recorded()
    same = "".join(
        f"- {group.lower()}: {'; '.join(names)}\n"
        for group, probes in GROUPS.items()
        if (names := [what for what in probes if not differs(columns, group, what)])
    )
    return f"{markdown(list(rows(columns)))}\nAll servers answer as S3 to:\n\n{same}"


def rows(columns: Mapping[str, Answers]) -> Iterator[Sequence[str]]:
    """Yield the heading, and for every group its name and a row for each request that differs."""
    yield ("request", "S3", *(STORES[store].heading for store in columns))
    for group, probes in GROUPS.items():
        yield (f"**{group}**", *("",) * (1 + len(columns)))
        for what, probe in probes.items():
            if differs(columns, group, what):
                given = (answered[group, what] for answered in columns.values())
                yield (what, probe.s3, *(SAME if text == probe.s3 else text for text in given))


def differs(columns: Mapping[str, Answers], group: str, what: str) -> bool:
    """Tell whether a server's answer to a request differs from S3's."""
    return {answered[group, what] for answered in columns.values()} != {GROUPS[group][what].s3}


def file_rows(columns: Mapping[str, Answers]) -> Iterator[Sequence[str]]:
    """Yield the heading of the file, and a row for each request."""
    yield ("group", "request", *columns)
    for group, probes in GROUPS.items():
        for what in probes:
            yield (group, what, *(answered[group, what] for answered in columns.values()))


def recorded() -> Mapping[str, Answers]:
    """Return the last recorded answers of the servers."""
    heading, *lines = read_rows(FILE)
    return {
        store: {(group, what): answers[index] for group, what, *answers in lines}
        for index, store in enumerate(heading[2:])
    }


if __name__ == "__main__":
    main()
