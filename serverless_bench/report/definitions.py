"""Definitions of the fields of JSON reports, from ``figures.toml`` of metrics and of each part."""

from collections.abc import Iterable, Mapping
from importlib.resources import files

import msgspec

from serverless_bench.base.user_files import parse_toml
from serverless_bench.metrics.part import parts_of


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
