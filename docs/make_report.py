"""Make the tables of figures in docs from serverless_bench/metrics/figures.toml."""

from collections.abc import Iterator, Mapping
from typing import Final

from docs.tables import HERE, markdown
from serverless_bench.report.definitions import Figure, read

FIGURES: Final = HERE.parent / "serverless_bench" / "metrics" / "figures.toml"


def tables() -> Mapping[str, str]:
    """Return the fields of each object of a JSON report as Markdown, by the name of the object."""
    figures = read(FIGURES.read_text(encoding="utf-8"))
    return {name: markdown(list(_rows(fields))) for name, fields in figures.items()}


def _rows(fields: Mapping[str, Figure]) -> Iterator[tuple[str, ...]]:
    yield ("field", "is", "unit", "counts")
    for name, figure in fields.items():
        null = "" if figure.null is None else f"; null {figure.null}"
        unit = ", ".join(part for part in (figure.unit, figure.form) if part)
        yield (f"`{name}`", figure.what + null, unit, ", ".join(figure.counts))
