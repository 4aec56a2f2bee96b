"""``figures.toml`` of metrics and of the features defines the fields of JSON reports, no others.

The same of the JSON of ``sbench limit``.
"""

import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from docs.make_report import defined, tables
from docs.make_tables import PAGES, TABLE
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import AttemptStats
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.report.definitions import Figure
from serverless_bench.rundir.record import BadRange, FoundBytes
from serverless_bench.rundir.schema import Neighbours, Stopped
from tests.data.runs import lost, operation, outcome, record, saved
from tests.house.examples import examples
from tests.house.members import uses
from tests.tables import each_row

pytestmark = uses("feature compare", "feature cost", "feature limit", "feature remote")
DEFINED = defined()
COUNTED = {"warm-up", "duplicates", "failed", "lost"}
UNITS = {
    "_per_s": "/s",
    "_bytes": "bytes",
    "_ns": "ns",
    "_s": "s",
    "_gib": "s/GiB",
}
OTHER_UNITS = {"throttled_peak_per_s": "attempts", "gb_s": "GB s"}
WITHOUT_A_CLASS = {"bad_ranges", "why", "why_change", "why_block"}
"""Checked below; those of ``sbench why`` in features/why/tests/integration/test_why.py."""
PARTS: dict[str, Any] = examples("PARTS")
"""Types of the parts of reports."""
IN_ALL = {"bottleneck", "barrier", "libraries", "stability"}
"""Those of all reports; the barrier and the stability are null in most."""
ANSWERS: list[Any] = [*examples("ANSWERS").values()]
SECTIONS = {
    **examples("SECTIONS"),
    "MissingFunctions": "missing_functions",
    "Neighbours": "neighbours",
    "Clocks": "clocks",
    "Histogram": "histogram",
    "Latencies": "latencies",
    "Latency": "by_kind",
    "OverTime": "over_time",
    "Stopped": "stopped",
    "Summary": "report",
    "Times": "times",
    "Violation": "violations",
}


def hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields that an object has as JSON."""
    there = get_type_hints(kind)
    if kind is Summary:
        del there["attempt_stats"], there["polled"], there["argument"], there["parts"]
        there |= PARTS
        there |= {"report_schema": int, **hints(AttemptStats)}
    if kind.__name__ == "LevelRow":
        there["verdict"] = str
    return there


def inside(hint: Any) -> Iterator[type]:
    """Yield the classes with fields in a type."""
    if hasattr(hint, "__match_args__"):
        yield typing.cast("type", hint)
    for part in get_args(hint):
        yield from inside(part)


def reachable() -> list[type]:
    todo: list[type] = [Summary, *ANSWERS]
    seen = list(todo)
    while todo:
        for hint in hints(todo.pop()).values():
            new = [kind for kind in inside(hint) if kind not in seen]
            seen += new
            todo += new
    return seen


def fields_of(section: str) -> dict[str, Any]:
    (kind,) = [kind for kind in reachable() if SECTIONS[kind.__name__] == section]
    return hints(kind)


def is_optional(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) and type(None) in get_args(hint)


def every() -> list[tuple[str, str, Figure]]:
    return [(s, name, f) for s, entries in DEFINED.items() for name, f in entries.items()]


def test_every_object_of_a_report_has_a_section_and_every_section_an_object() -> None:
    assert sorted(SECTIONS[kind.__name__] for kind in reachable()) == sorted(
        {*DEFINED} - WITHOUT_A_CLASS
    )


@each_row("section", sorted(SECTIONS.values()))
def test_a_section_defines_the_fields_of_its_object(section: str) -> None:
    assert set(DEFINED[section]) == set(fields_of(section))


@each_row("section", sorted(SECTIONS.values()))
def test_a_field_says_when_it_is_null_if_it_can_be(section: str) -> None:
    # These optional objects are absent from the report, and not null.
    absent = {Neighbours, Stopped}
    for name, hint in fields_of(section).items():
        can_be = is_optional(hint) and not absent & {*inside(hint)}
        assert (DEFINED[section][name].null is not None) is can_be, (section, name)


@each_row("section", sorted(SECTIONS.values()))
def test_fields_with_several_values_have_a_form_and_numbers_units(section: str) -> None:
    for name, hint in fields_of(section).items():
        figure = DEFINED[section][name]
        parts = {hint, *get_args(hint)}
        several = any(typing.get_origin(part) in {tuple, Mapping} for part in parts)
        assert (figure.form is not None) is several, (section, name)
        if parts & {int, float}:
            assert figure.unit is not None, (section, name)


def test_a_name_says_its_unit() -> None:
    for section, name, figure in every():
        ending = next((end for end in UNITS if name.endswith(end)), None)
        if ending is not None and figure.unit is not None:
            assert figure.unit.endswith(OTHER_UNITS.get(name, UNITS[ending])), (section, name)


def test_counted_categories_are_known() -> None:
    for section, name, figure in every():
        assert {*figure.counts} <= COUNTED, (section, name)
        assert figure.what
        assert not figure.what.endswith(".")
        assert "|" not in figure.what


def test_wrong_bytes_have_the_fields_that_are_defined(tmp_path: Path) -> None:
    bad = BadRange(operation=0, key="k", offset=7, length=3, bad_bytes=2, found=FoundBytes.ZEROS)
    get = operation(kind=OperationKind.GET, error="corrupt", bad_bytes=2)
    found = summarize(saved(tmp_path / "run", [outcome(record(0, [get], bad_ranges=[bad]))]))
    assert set(found.bad_ranges[0]) == set(DEFINED["bad_ranges"])


def test_a_report_has_the_fields_that_are_defined(tmp_path: Path) -> None:
    found = summarize(
        saved(tmp_path / "run", [outcome(record(0, [operation()])), outcome(lost(1))])
    )
    absent = {"neighbours", "stopped", "batches_s", *PARTS} - IN_ALL
    assert set(found.to_json()) == set(DEFINED["report"]) - absent
    assert "attempt_stats" not in found.to_json()


def test_every_object_is_on_one_page_with_all_fields() -> None:
    pages = (page.read_text(encoding="utf-8") for page in PAGES)
    shown = [table["name"] for page in pages for table in TABLE.finditer(page)]
    assert sorted({*DEFINED} & {*shown}) == sorted(DEFINED)
    assert len(shown) == len({*shown})
    for section, name, _ in every():
        assert f"\n| `{name}` | " in tables()[section]
