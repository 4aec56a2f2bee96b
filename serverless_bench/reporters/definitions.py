"""What each field of a JSON report is, as analysis/figures.toml defines it."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from serverless_bench.user_files import parse_toml

_INDEX: Final = re.compile(r"\[\d+\]")
_AS_BEFORE: Final = "as before"
_INNER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("latency", "service", "response", "queueing"), "times"),
    **dict.fromkeys(("capped", "usl"), "law"),
}
"""Sections of objects that have another name than the field."""


class Figure(
    msgspec.Struct, frozen=True, kw_only=True, rename={"what": "is"}, forbid_unknown_fields=True
):
    """One field of a JSON report; analysis/figures.toml says what its parts mean."""

    what: str
    unit: str | None = None
    form: str | None = None
    counts: tuple[str, ...] = ()
    null: str | None = None


Sections = Mapping[str, Mapping[str, Figure]]
"""Definitions by section, which is an object of the document, and field."""


def read(text: str) -> Sections:
    """Return the definitions by section and field."""
    return msgspec.convert(parse_toml(text), dict[str, dict[str, Figure]])


@cache
def definitions() -> Sections:
    """Return the definitions of the report of a run, each of which can be read by itself."""
    found = read((files("serverless_bench.analysis") / "figures.toml").read_text(encoding="utf-8"))
    return {section: _by_themselves(figures) for section, figures in found.items()}


@cache
def terms() -> Sections:
    """Return the definitions of the other documents: comparisons, series, experiments."""
    here = files("serverless_bench.reporters.page")
    return read((here / "terms.toml").read_text(encoding="utf-8"))


def find(path: str, sections: Sections, section: str) -> tuple[str, Figure] | None:
    """Return the definition of a value of a document, and a name for it; None without one.

    Parameters
    ----------
    path
        Of the value, as in ``latencies.by_kind[0].ok``. What holds several values, by error
        or as percentiles, is defined as a whole.
    sections
        All definitions.
    section
        That of the document.
    """
    found = None
    for name in _INDEX.sub("", path).split("."):
        if name in sections[section]:
            found = f"{section}-{name}", sections[section][name]
        inner = _INNER.get(name, name)
        section = inner if inner in sections else section
    return found


def _by_themselves(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return the figures of a section with what a row of a table has from the row above it."""
    made: dict[str, Figure] = {}
    before = ""
    for name, figure in figures.items():
        made[name] = figure
        if figure.null is not None:
            before = figure.null.replace(_AS_BEFORE, before)
            made[name] = msgspec.structs.replace(figure, null=before)
    return made
