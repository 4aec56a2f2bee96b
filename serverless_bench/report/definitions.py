"""Definitions of the fields of JSON reports, from ``figures.toml`` of metrics and of each part."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from serverless_bench.base.user_files import parse_toml
from serverless_bench.metrics.part import parts_of

_INDEX: Final = re.compile(r"\[\d+\]")
_AS_BEFORE: Final = "as before"
_INNER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("latency", "service", "response", "queueing"), "times"),
    **dict.fromkeys(("capped", "usl"), "law"),
}
"""Sections of objects with names that differ from the field."""


class Figure(
    msgspec.Struct, frozen=True, kw_only=True, rename={"what": "is"}, forbid_unknown_fields=True
):
    """Definition of a field of a JSON report; metrics/figures.toml documents its parts."""

    what: str
    unit: str | None = None
    form: str | None = None
    counts: tuple[str, ...] = ()
    null: str | None = None


Sections = Mapping[str, Mapping[str, Figure]]
"""Definitions by section, which corresponds to an object of the document, and by field."""


def read(text: str) -> Sections:
    """Return definitions by section and field."""
    return msgspec.convert(parse_toml(text), dict[str, dict[str, Figure]])


def written_definitions(workloads: Iterable[str]) -> Sections:
    """Return the definitions of reports of these workloads' runs, as they are written."""
    parts = dict.fromkeys(part for workload in workloads for part in parts_of(workload))
    sections: dict[str, dict[str, Figure]] = {}
    for folder in ("serverless_bench.metrics", *(part.folder for part in parts)):
        text = (files(folder) / "figures.toml").read_text(encoding="utf-8")
        for section, figures in read(text).items():
            sections.setdefault(section, {}).update(figures)
    return sections


@cache
def definitions(workload: str) -> Sections:
    """Return the self-contained definitions of the report of a workload's run."""
    sections = written_definitions([workload])
    return {section: _by_themselves(figures) for section, figures in sections.items()}


def find(path: str, sections: Sections, section: str) -> tuple[str, Figure] | None:
    """Return the definition and the name of a value of a document; None if it is undefined.

    Parameters
    ----------
    path
        Path of the value, such as ``latencies.by_kind[0].ok``. Mappings of errors and of
        percentiles have a single definition.
    sections
        All definitions.
    section
        Section of the document.
    """
    definition = None
    for name in _INDEX.sub("", path).split("."):
        if name in sections[section]:
            definition = f"{section}-{name}", sections[section][name]
        inner = _INNER.get(name, name)
        section = inner if inner in sections else section
    return definition


def _by_themselves(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return the figures of a section, with references to the previous row resolved."""
    resolved: dict[str, Figure] = {}
    before = ""
    for name, figure in figures.items():
        resolved[name] = figure
        if figure.null is not None:
            before = figure.null.replace(_AS_BEFORE, before)
            resolved[name] = msgspec.structs.replace(figure, null=before)
    return resolved
