"""Parsing of a study's text; an unknown or missing entry is an error."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_size
from serverless_bench.base.user_files import parse_toml
from serverless_bench.features.studies import SCALES, text_of
from serverless_bench.features.studies.definition import (
    KINDS,
    RATES,
    UNITS,
    Axis,
    Check,
    Hypothesis,
    Link,
    Metric,
    NamedCell,
    Plot,
    Publication,
    PublishedRow,
    Repeats,
    Scale,
    Setting,
    Settings,
    Study,
    Unsupported,
    Value,
)
from serverless_bench.features.studies.settings import check_settings, is_setting, merged
from serverless_bench.job.setting_schema import checked, converted, located

_ROW: Final = ("at", "cell", "note")
"""Keys of a published row other than metrics."""

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


def load_study(name: str) -> Study:
    """Return a study by name, or by the path of a file.

    Raises
    ------
    UsageError
        If no study has this name, or the file is invalid.
    """
    return parse(text_of(name), Path(name).stem)


def parse(text: str, name: str) -> Study:
    """Return the study in a file's text.

    Raises
    ------
    UsageError
        If the text is not TOML, or does not describe a study.
    """
    with located(f"study {name}", hint='see "Study files" in the documentation'):
        try:
            data = parse_toml(text)
        except ValueError as exc:
            raise UsageError(f"is not TOML: {exc}") from exc
        study = _study(data, name=name, text=text)
        _check(study)
    return study


def as_settings(data: Mapping[str, Any]) -> dict[str, Setting]:
    """Flatten a table and nested tables into a table with dotted names.

    Raises
    ------
    UsageError
        If a value is not a text, a number, a boolean or a list of these.
    """
    settings: dict[str, Setting] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            with located(name):
                settings |= {
                    f"{name}.{key}": setting for key, setting in as_settings(value).items()
                }
        else:
            settings[name] = converted(Setting, name, value)
    return settings


def _study(data: dict[str, Any], *, name: str, text: str) -> Study:
    parts: dict[str, Callable[[dict[str, Any]], Struct]] = {
        "axes": _axis,
        "cells": _cell,
        "checks": _row_check,
        "controls": _cell,
        "hypotheses": partial(_made, Hypothesis),
        "metrics": lambda table: _made(
            Metric, {"header": table.get("name", ""), **_sized(table, "for_bytes")}
        ),
        "published": _row,
        "unsupported": partial(_made, Unsupported),
    }
    for key, make in parts.items():
        if isinstance(data.get(key), dict):
            raise UsageError(f"{key}: is a list of tables", hint=f"[[{key}]]")
        tables, data[key] = converted(list[dict[str, Any]], key, data.get(key, [])), []
        for number, table in enumerate(tables, 1):
            with located(f"{key} {number}"):
                data[key].append(make(table))
    scale = partial(_scale, _inner(data, "settings", as_settings))
    scales = {name: _inner(data, name, scale) for name in SCALES}
    for key, made_of in (("prepare", _by_scale), ("plot", partial(_made, Plot)), ("seed", _seed)):
        if key in data:
            data[key] = _inner(data, key, made_of)
    return _made(Study, data, scales=scales, name=name, text=text)


def _inner(table: dict[str, Any], name: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Remove a nested table from a table, and return the object made of it."""
    inner: dict[str, Any] = converted(dict[str, Any], name, table.pop(name, {}))
    with located(name):
        return make(inner)


def _made(kind: type[S], table: Mapping[str, Any], **additions: object) -> S:
    """Return the part of a study that a table describes, with additional fields."""
    fields_by_name = {field.name: field for field in fields(kind)}
    for name in table:
        if name not in fields_by_name or name in additions:
            raise UsageError(f"contains unknown field {name!r}")
    for name, field in fields_by_name.items():
        if field.required and name not in table and name not in additions:
            raise UsageError(f"missing required field {name!r}")
    return kind(
        **{name: checked(kind, name, value) for name, value in {**table, **additions}.items()}
    )


def _scale(shared: Settings, table: dict[str, Any]) -> Scale:
    settings = merged(shared, _inner(table, "settings", as_settings))
    return _made(Scale, _sized(table, "min_bytes"), settings=settings)


def _seed(table: dict[str, Any]) -> Publication:
    # A date without quotes is a date value in TOML.
    return _made(Publication, {n: str(v) if n == "date" else v for n, v in table.items()})


def _by_scale(table: dict[str, Any]) -> dict[str, Settings]:
    """Return settings by scale, given shared settings and tables for each scale."""
    settings_of_scale = {scale: _inner(table, scale, as_settings) for scale in SCALES}
    return {scale: merged(as_settings(table), settings_of_scale[scale]) for scale in SCALES}


def _axis(axis: dict[str, Any]) -> Axis:
    name, shared = axis.get("name", ""), axis.pop("values", ())
    axis = {"header": name, "setting": name, **axis}
    axis["values"] = {s: converted(tuple[Value, ...], s, axis.pop(s, shared)) for s in SCALES}
    if not isinstance(axis.get("baseline", {}), Mapping):
        axis["baseline"] = dict.fromkeys(SCALES, axis["baseline"])
    axis["levels"] = _inner(
        axis,
        "levels",
        lambda levels: {level: _inner(levels, level, _by_scale) for level in [*levels]},
    )
    return _made(Axis, axis)


def _cell(cell: dict[str, Any]) -> NamedCell:
    values_by_scale: dict[str, Any] = {scale: cell.pop(scale) for scale in SCALES if scale in cell}
    return _made(
        NamedCell, cell, at=_inner(cell, "at", lambda at: _by_scale({**at, **values_by_scale}))
    )


def _row(row: dict[str, Any]) -> PublishedRow:
    figures = {name: row.pop(name) for name in [*row] if name not in _ROW}
    return _made(PublishedRow, row, values=figures)


def _row_check(table: dict[str, Any]) -> Check:
    name = converted(str, "kind", table.pop("kind", ""))
    if name not in KINDS:
        raise UsageError(f"there is no kind {name!r}", hint=f"known: {', '.join(KINDS)}")
    return _made(KINDS[name], _sized(table, "bytes"))


def _sized(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table in which a size may have a unit."""
    with located(name):
        return {n: parse_size(str(v), least=0) if n == name else v for n, v in table.items()}


def _check(study: Study) -> None:
    """Check that a study refers only to defined names."""
    if not study.metrics:
        raise UsageError("has no [[metrics]]; add one")
    _once("axes", (axis.name for axis in study.axes))
    _once("metrics", (metric.name for metric in study.metrics))
    _once("hypotheses", (hypothesis.id for hypothesis in study.hypotheses))
    _once("cells", (cell.name for cell in (*study.cells, *study.controls)))
    for settings, place in _settings(study):
        with located(place):
            check_settings(settings)
    for axis in study.axes:
        with located(f"axis {axis.name}"):
            _check_axis(axis, may_be_empty=study.design == "list")
    for number, check in enumerate(study.checks, 1):
        with located(f"checks {number}"):
            _check_check(study, check)
    for name, allowed, place in _references(study):
        if name not in allowed:
            raise UsageError(
                f"{place}: there is no {name!r}", hint=f"known: {', '.join(filter(None, allowed))}"
            )


def _once(what: str, names_there: Iterable[object]) -> None:
    for name, count in Counter(names_there).items():
        if count > 1:
            raise UsageError(
                f"{what}: {name!r} is defined twice", hint="give each entry a different name"
            )


def _settings(study: Study) -> Iterator[tuple[Settings, str]]:
    yield from ((scale.settings, f"settings of {name}") for name, scale in study.scales.items())
    yield from ((settings, "prepare") for settings in (study.prepare or {}).values())
    for axis in study.axes:
        for level, by_scale in axis.levels.items():
            yield from (
                (settings, f"level {level} of {axis.name}") for settings in by_scale.values()
            )
    axes = {axis.name for axis in study.axes}
    for cell in (*study.cells, *study.controls):
        for at in cell.at.values():
            yield {n: v for n, v in at.items() if n not in axes}, f"cell {cell.name}"


def _check_axis(axis: Axis, *, may_be_empty: bool) -> None:
    for scale, values in axis.values.items():
        if not values and not may_be_empty:
            raise UsageError(f"has no values for {scale}", hint=f"{scale} = [...]")
        _once("values", map(str, values))
        plain = [value for value in values if str(value) not in axis.levels]
        if plain and not is_setting(axis.setting):
            raise UsageError(
                f"{plain[0]!r} is not a level, and {axis.setting!r} is not a setting",
                hint=f"define it in [axes.levels.{plain[0]}]",
            )
    if axis.paired and len(set(map(len, axis.values.values()))) > 1:
        raise UsageError("is paired, but small and paper differ in length")


def _check_check(study: Study, check: Check) -> None:
    """Check that a check has the values to compare."""
    if isinstance(check, Repeats):
        same = len(check.metrics) == len(check.others) if check.others else bool(check.along)
        if len(check.metrics) < 2 or not same:
            raise UsageError(
                "needs two or more `metrics` to compare",
                hint="give `along` an axis, or as many `others`",
            )
    if not isinstance(check, Link):
        return
    if check.unit not in RATES:
        raise UsageError(
            f"`unit` has to be a unit of bytes per second, not {check.unit!r}",
            hint=f"known: {', '.join(sorted(RATES))}",
        )
    units = {metric.name: metric.unit for metric in study.metrics}
    if units.get(check.metric) not in RATES and not (check.along or check.bytes):
        raise UsageError(
            f"{check.metric!r} is not a rate of bytes",
            hint="give `along` an axis of sizes, or `bytes`",
        )


def _references(study: Study) -> Iterator[tuple[str, Collection[str], str]]:
    """Yield each reference, the permitted names, and the place in the file."""
    axes = [axis.name for axis in study.axes]
    metrics = [metric.name for metric in study.metrics]
    cells = [cell.name for cell in (*study.cells, *study.controls)]
    yield study.pivot, [*axes, ""], "pivot"
    for metric in study.metrics:
        here = f"metric {metric.name}"
        yield metric.unit, UNITS, f"{here}, unit"
        if metric.relative:
            yield metric.to, axes, f"{here}, to"
    for hypothesis in study.hypotheses:
        here = f"hypothesis {hypothesis.id}"
        yield hypothesis.metric, metrics, f"{here}, metric"
        yield hypothesis.along, [*axes, "cell"], f"{here}, along"
        yield hypothesis.across, [*axes, ""], f"{here}, across"
        yield from ((name, [*axes, "cell"], f"{here}, where") for name in hypothesis.where)
    for number, row in enumerate(study.published, 1):
        here = f"published {number}"
        yield row.cell, [*cells, ""], f"{here}, cell"
        yield from ((name, metrics, here) for name in row.values)
        yield from ((name, [*axes, "cell"], here) for name in row.at)
    for number, check in enumerate(study.checks, 1):
        yield from ((name, metrics, f"checks {number}") for name in check.metric_names)
        yield from ((name, axes, f"checks {number}") for name in check.axis_names)
    for number, cells_there in enumerate(study.unsupported, 1):
        yield from ((name, [*axes, "cell"], f"unsupported {number}") for name in cells_there.at)
    if study.plot is not None:
        yield study.plot.x, [*axes, "cell", ""], "plot, x"
        yield study.plot.y, [*metrics, ""], "plot, y"
        yield study.plot.series, [*axes, ""], "plot, series"
