"""Make the table of docs/stores.md from what S3 servers answer now.

make stores

``python docs/make_stores.py moto rclone`` asks these only, and keeps the other columns.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the probes are a part of the tests

from tests.probes.stores import STORES  # noqa: E402
from tests.probes.table import GROUPS, answers  # noqa: E402

PAGE = ROOT / "docs" / "stores.md"
BEGIN, END = "<!-- begin of the answers: make stores -->\n", "<!-- end of the answers -->\n"
SAME = "="
"""Stands for the answer that S3 gives by its reference."""

Answers = Mapping[tuple[str, str], str]
"""By group and request."""


def main() -> None:
    """Ask the servers that are named, or all, and put the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    columns = {
        store: ask(store) if store in (sys.argv[1:] or STORES) else column(page, store)
        for store in STORES
    }
    PAGE.write_text(replaced(page, table(columns)), encoding="utf-8")


def ask(store: str) -> Answers:
    """Start a server, and return what it answers."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        STORES[store].start(Path(scratch)) as server,
    ):
        return answers(server)


def table(columns: Mapping[str, Answers]) -> str:
    """Return the answers as Markdown: a table of what differs, and a list of what does not."""
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows(columns))
    same = "".join(
        f"- {group.lower()}: {'; '.join(names)}\n"
        for group, probes in GROUPS.items()
        if (names := [what for what in probes if not differs(columns, group, what)])
    )
    return f"{lines}\nAll servers answer as S3 to:\n\n{same}"


def rows(columns: Mapping[str, Answers]) -> Iterator[Sequence[str]]:
    """Yield the heading, and for every group its name and a row for each request that differs."""
    yield ("request", "S3", *(STORES[store].heading for store in columns))
    yield ("---",) * (2 + len(columns))
    for group, probes in GROUPS.items():
        yield (f"**{group}**", *("",) * (1 + len(columns)))
        for what, probe in probes.items():
            if differs(columns, group, what):
                given = (answered[group, what] for answered in columns.values())
                yield (what, probe.s3, *(SAME if text == probe.s3 else text for text in given))


def differs(columns: Mapping[str, Answers], group: str, what: str) -> bool:
    """Tell whether a server answers a request otherwise than S3."""
    return {answered[group, what] for answered in columns.values()} != {GROUPS[group][what].s3}


def column(page: str, store: str) -> Answers:
    """Return what a server answered when the page was made."""
    answered = {
        (group, what): probe.s3
        for group, probes in GROUPS.items()
        for what, probe in probes.items()
    }
    group = ""
    index = 2 + list(STORES).index(store)
    text = page.partition(BEGIN)[2].partition(END)[0].partition("\n\n")[0]
    for line in text.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("**"):
            group = cells[0].strip("*")
        else:
            answered[group, cells[0]] = cells[1] if cells[index] == SAME else cells[index]
    return answered


def replaced(page: str, text: str) -> str:
    """Return the page with another table."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


if __name__ == "__main__":
    main()
