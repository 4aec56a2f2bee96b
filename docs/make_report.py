"""Make the tables of figures in docs from ``figures.toml`` of metrics and of the features."""

from collections.abc import Iterator, Mapping
from functools import cache

from docs.tables import markdown
from serverless_bench.job.workload import WORKLOADS
from serverless_bench.report.definitions import Figure, Sections, written_definitions


def defined() -> Sections:
    """Return the definitions of the fields that reports can have."""
    return written_definitions(WORKLOADS)


def table(name: str) -> str:
    """Return the fields of an object of a JSON report as Markdown."""
    return tables()[name]


@cache
def tables() -> Mapping[str, str]:
    """Return the fields of each object of a JSON report as Markdown, by the name of the object."""
    return {name: markdown(list(_rows(fields))) for name, fields in defined().items()}


def _rows(fields: Mapping[str, Figure]) -> Iterator[tuple[str, ...]]:
    yield ("field", "is", "unit", "counts")
    for name, figure in fields.items():
        null = "" if figure.null is None else f"; null {figure.null}"
        unit = ", ".join(part for part in (figure.unit, figure.form) if part)
        yield (f"`{name}`", figure.what + null, unit, ", ".join(figure.counts))
