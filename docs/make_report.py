"""Make the tables of docs/report.md and limit.md from serverless_bench/analysis/figures.toml.

make report

A table stands between two marks, the first of which names a section of the data; what is
written around them stays.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.reporters.definitions import Figure, read

HERE: Final = Path(__file__).parent
FIGURES: Final = HERE.parent / "serverless_bench" / "analysis" / "figures.toml"
PAGES: Final = (HERE / "report.md", HERE / "limit.md")
_TABLE: Final = re.compile(
    r"(<!-- fields of (\w+), made by make report -->\n).*?(<!-- end -->)", re.DOTALL
)
_HEADER: Final = ("field", "is", "unit", "counts")


def main() -> None:
    """Put the tables into the pages."""
    figures = read(FIGURES.read_text(encoding="utf-8"))
    for page in PAGES:
        page.write_text(made(page.read_text(encoding="utf-8"), figures), encoding="utf-8")


def made(page: str, figures: Mapping[str, Mapping[str, Figure]]) -> str:
    """Return a page with each table as the definitions have it.

    Raises
    ------
    KeyError
        If it asks for a section that is not there.
    """

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}{''.join(_lines(figures[found[2]]))}{found[3]}"

    return _TABLE.sub(table, page)


def sections(page: str) -> list[str]:
    """Return the sections whose tables a page has."""
    return [found[2] for found in _TABLE.finditer(page)]


def _lines(figures: Mapping[str, Figure]) -> Iterator[str]:
    yield _line(_HEADER)
    yield _line(["---"] * len(_HEADER))
    for name, figure in figures.items():
        null = "" if figure.null is None else f"; null {figure.null}"
        unit = ", ".join(part for part in (figure.unit, figure.form) if part)
        yield _line((f"`{name}`", figure.what + null, unit, ", ".join(figure.counts)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
