"""From the text of an experiment to its values; what is unknown or missing is an error."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from serverless_bench.errors import UsageError
from serverless_bench.settings.schema import checked, converted, located
from serverless_bench.studies import SCALES
from serverless_bench.studies.definition import (
    KINDS,
    RATES,
    UNITS,
    Axis,
    Check,
    Experiment,
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
    Unsupported,
    Value,
)
from serverless_bench.studies.settings import check_settings, is_setting, merged
from serverless_bench.units import parse_size
from serverless_bench.user_files import parse_toml, read_text, reason

_HINT: Final = "docs/experiments/README.md has the keys"
_ROW: Final = ("at", "cell", "note")
"""Keys of a published row that are no metrics."""

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


def names() -> list[str]:
    """Return the names of the experiments that come with sbench, sorted."""
    here = files("serverless_bench.studies").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in here if file.name.endswith(".toml"))


def load_experiment(name: str) -> Experiment:
    """Return an experiment by its name, or by the path of its file.

    Raises
    ------
    UsageError
        If there is none of that name, or its file says what it cannot say.
    """
    if name in names():
        file = files("serverless_bench.studies") / f"{name}.toml"
        return parse(file.read_text(encoding="utf-8"), name)
    if not name.endswith(".toml"):
        raise UsageError(
            f"there is no experiment {name!r}",
            hint=f"known: {', '.join(names())}; or name a file of yours, as in my.toml",
        )
    try:
        text = read_text(Path(name))
    except (OSError, ValueError) as exc:
        raise UsageError(f"cannot read the experiment {name}: {reason(exc)}") from exc
    return parse(text, Path(name).stem)


def parse(text: str, name: str) -> Experiment:
    """Return the experiment that a file's text describes.

    Raises
    ------
    UsageError
        If it is no TOML, or says what an experiment cannot say.
    """
    with located(f"experiment {name}", hint=_HINT):
        try:
            data = parse_toml(text)
        except ValueError as exc:
            raise UsageError(f"is not TOML: {exc}") from exc
        experiment = _experiment(data, name=name, text=text)
        _check(experiment)
    return experiment


def as_settings(data: Mapping[str, Any]) -> dict[str, Setting]:
    """Return a table, and the tables in it, as one with dotted names.

    Raises
    ------
    UsageError
        If a value is none of text, number, truth or a list of these.
    """
    found: dict[str, Setting] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            with located(name):
                found |= {f"{name}.{key}": one for key, one in as_settings(value).items()}
        else:
            found[name] = converted(Setting, name, value)
    return found


def _experiment(data: dict[str, Any], *, name: str, text: str) -> Experiment:
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
    for key, made in parts.items():
        if isinstance(data.get(key), dict):
            raise UsageError(f"{key}: is a list of tables", hint=f"[[{key}]]")
        tables, data[key] = converted(list[dict[str, Any]], key, data.get(key, [])), []
        for number, table in enumerate(tables, 1):
            with located(f"{key} {number}"):
                data[key].append(made(table))
    scale = partial(_scale, _inner(data, "settings", as_settings))
    scales = {name: _inner(data, name, scale) for name in SCALES}
    for key, made_of in (("prepare", _by_scale), ("plot", partial(_made, Plot)), ("seed", _seed)):
        if key in data:
            data[key] = _inner(data, key, made_of)
    return _made(Experiment, data, scales=scales, name=name, text=text)


def _inner(table: dict[str, Any], name: str, made: Callable[[dict[str, Any]], T]) -> T:
    """Return what is made of a table in a table, which is taken out of it."""
    inner: dict[str, Any] = converted(dict[str, Any], name, table.pop(name, {}))
    with located(name):
        return made(inner)


def _made(kind: type[S], table: Mapping[str, Any], **more: object) -> S:
    """Return the part of an experiment that a table describes, with more that is not in it."""
    known = {one.name: one for one in fields(kind)}
    for name in table:
        if name not in known or name in more:
            raise UsageError(f"contains unknown field {name!r}")
    for name, one in known.items():
        if one.required and name not in table and name not in more:
            raise UsageError(f"missing required field {name!r}")
    return kind(**{name: checked(kind, name, value) for name, value in {**table, **more}.items()})


def _scale(shared: Settings, table: dict[str, Any]) -> Scale:
    settings = merged(shared, _inner(table, "settings", as_settings))
    return _made(Scale, _sized(table, "min_bytes"), settings=settings)


def _seed(table: dict[str, Any]) -> Publication:
    # Without quotes it is a date of TOML's.
    return _made(Publication, {n: str(v) if n == "date" else v for n, v in table.items()})


def _by_scale(table: dict[str, Any]) -> dict[str, Settings]:
    """Return settings of which some, in tables of their own, are of one scale only."""
    own = {scale: _inner(table, scale, as_settings) for scale in SCALES}
    return {scale: merged(as_settings(table), own[scale]) for scale in SCALES}


def _axis(axis: dict[str, Any]) -> Axis:
    name, shared = axis.get("name", ""), axis.pop("values", ())
    axis = {"header": name, "setting": name, **axis}
    axis["values"] = {s: converted(tuple[Value, ...], s, axis.pop(s, shared)) for s in SCALES}
    if not isinstance(axis.get("baseline", {}), Mapping):
        axis["baseline"] = dict.fromkeys(SCALES, axis["baseline"])
    axis["levels"] = _inner(
        axis, "levels", lambda levels: {one: _inner(levels, one, _by_scale) for one in [*levels]}
    )
    return _made(Axis, axis)


def _cell(cell: dict[str, Any]) -> NamedCell:
    own: dict[str, Any] = {scale: cell.pop(scale) for scale in SCALES if scale in cell}
    return _made(NamedCell, cell, at=_inner(cell, "at", lambda at: _by_scale({**at, **own})))


def _row(row: dict[str, Any]) -> PublishedRow:
    figures = {name: row.pop(name) for name in [*row] if name not in _ROW}
    return _made(PublishedRow, row, values=figures)


def _row_check(table: dict[str, Any]) -> Check:
    name = converted(str, "kind", table.pop("kind", ""))
    if name not in KINDS:
        raise UsageError(f"there is no kind {name!r}", hint=f"known: {', '.join(KINDS)}")
    return _made(KINDS[name], _sized(table, "bytes"))


def _sized(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table whose size may have a unit."""
    with located(name):
        return {n: parse_size(str(v)) if n == name else v for n, v in table.items()}


def _check(experiment: Experiment) -> None:
    """Refuse an experiment whose parts name what is not there."""
    if not experiment.metrics:
        raise UsageError("has no [[metrics]]")
    _once("axes", (axis.name for axis in experiment.axes))
    _once("metrics", (metric.name for metric in experiment.metrics))
    _once("hypotheses", (one.id for one in experiment.hypotheses))
    _once("cells", (cell.name for cell in (*experiment.cells, *experiment.controls)))
    for settings, place in _settings(experiment):
        with located(place):
            check_settings(settings)
    for axis in experiment.axes:
        with located(f"axis {axis.name}"):
            _check_axis(axis, may_be_empty=experiment.design == "list")
    for number, check in enumerate(experiment.checks, 1):
        with located(f"checks {number}"):
            _check_check(experiment, check)
    for name, known, place in _references(experiment):
        if name not in known:
            raise UsageError(
                f"{place}: there is no {name!r}", hint=f"known: {', '.join(filter(None, known))}"
            )


def _once(what: str, names_there: Iterable[object]) -> None:
    for name, count in Counter(names_there).items():
        if count > 1:
            raise UsageError(f"{what}: {name!r} stands there twice", hint="names differ")


def _settings(experiment: Experiment) -> Iterator[tuple[Settings, str]]:
    for name, scale in experiment.scales.items():
        yield scale.settings, f"settings of {name}"
    for settings in (experiment.prepare or {}).values():
        yield settings, "prepare"
    for axis in experiment.axes:
        for level, by_scale in axis.levels.items():
            yield from ((one, f"level {level} of {axis.name}") for one in by_scale.values())
    axes = {axis.name for axis in experiment.axes}
    for cell in (*experiment.cells, *experiment.controls):
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
                f"{plain[0]!r} is no level, and {axis.setting!r} no setting",
                hint=f"[axes.levels.{plain[0]}] says what it stands for",
            )
    if axis.paired and len(set(map(len, axis.values.values()))) > 1:
        raise UsageError("is paired, and small and paper differ in length")


def _check_check(experiment: Experiment, check: Check) -> None:
    """Refuse a check that cannot say what its figures must agree with."""
    if isinstance(check, Repeats):
        same = len(check.metrics) == len(check.others) if check.others else bool(check.along)
        if len(check.metrics) < 2 or not same:
            raise UsageError(
                "compares two or more `metrics`",
                hint="`along` an axis, or with as many `others`",
            )
    if not isinstance(check, Link):
        return
    if check.unit not in RATES:
        raise UsageError(
            f"`unit` is one of bytes per second, not {check.unit!r}",
            hint=f"known: {', '.join(sorted(RATES))}",
        )
    units = {metric.name: metric.unit for metric in experiment.metrics}
    if units.get(check.metric) not in RATES and not (check.along or check.bytes):
        raise UsageError(
            f"{check.metric!r} is no rate of bytes", hint="`along` an axis of sizes, or `bytes`"
        )


def _references(experiment: Experiment) -> Iterator[tuple[str, Collection[str], str]]:
    """Yield each word that stands for something, what it may be, and where it stands."""
    axes = [axis.name for axis in experiment.axes]
    metrics = [metric.name for metric in experiment.metrics]
    cells = [cell.name for cell in (*experiment.cells, *experiment.controls)]
    yield experiment.pivot, [*axes, ""], "pivot"
    for metric in experiment.metrics:
        here = f"metric {metric.name}"
        yield metric.unit, UNITS, f"{here}, unit"
        if metric.relative:
            yield metric.to, axes, f"{here}, to"
    for one in experiment.hypotheses:
        here = f"hypothesis {one.id}"
        yield one.metric, metrics, f"{here}, metric"
        yield one.along, [*axes, "cell"], f"{here}, along"
        yield one.across, [*axes, ""], f"{here}, across"
        yield from ((name, [*axes, "cell"], f"{here}, where") for name in one.where)
    for number, row in enumerate(experiment.published, 1):
        here = f"published {number}"
        yield row.cell, [*cells, ""], f"{here}, cell"
        yield from ((name, metrics, here) for name in row.values)
        yield from ((name, [*axes, "cell"], here) for name in row.at)
    for number, check in enumerate(experiment.checks, 1):
        yield from ((name, metrics, f"checks {number}") for name in check.metric_names)
        yield from ((name, axes, f"checks {number}") for name in check.axis_names)
    for number, cells_there in enumerate(experiment.unsupported, 1):
        yield from ((name, [*axes, "cell"], f"unsupported {number}") for name in cells_there.at)
    if experiment.plot is not None:
        yield experiment.plot.x, [*axes, "cell", ""], "plot, x"
        yield experiment.plot.y, [*metrics, ""], "plot, y"
        yield experiment.plot.series, [*axes, ""], "plot, series"
