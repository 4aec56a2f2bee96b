"""From the text of an experiment to its values; what is unknown or missing is an error."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.experiments import DESIGNS, SCALES
from serverless_bench.experiments.conversion import HINT, converted
from serverless_bench.experiments.definition import (
    BETTER,
    FORMER_PLOTS,
    PLOTS,
    RELATIVES,
    SEGMENTS,
    TESTS,
    UNITS,
    Experiment,
    Figure,
    Scale,
    Setting,
    Settings,
    Value,
)
from serverless_bench.experiments.settings import check_settings, is_setting

_KEYS: Final = {*Experiment.__struct_fields__, *SCALES, "settings"} - {"name", "scales", "text"}
"""Of a file; what it is called, and its text, are not in it."""
_ROW: Final = {"at", "cell", "note"}
"""Keys of a published row that are no metrics."""


def names() -> list[str]:
    """Return the names of the experiments that come with sbench, sorted."""
    here = files("serverless_bench.experiments").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in here if file.name.endswith(".toml"))


def load_experiment(name: str) -> Experiment:
    """Return an experiment by its name, or by the path of its file.

    Raises
    ------
    UsageError
        If there is none of that name, or its file says what it cannot say.
    """
    if name in names():
        text = files("serverless_bench.experiments").joinpath(f"{name}.toml").read_text("utf-8")
        return parse(text, name)
    path = Path(name)
    if path.suffix != ".toml":
        raise UsageError(
            f"there is no experiment {name!r}",
            hint=f"known: {', '.join(names())}; or name a file of yours, as in my.toml",
        )
    try:
        return parse(path.read_text(encoding="utf-8"), path.stem)
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read the experiment {path}: {exc}") from exc


def parse(text: str, name: str) -> Experiment:
    """Return the experiment that a file's text describes.

    Raises
    ------
    UsageError
        If it is no TOML, or says what an experiment cannot say.
    """
    where = f"experiment {name}"
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"{where}: is not TOML: {exc}") from exc
    values = {**_arranged(data, where), "name": name, "text": text}
    experiment: Experiment = converted(values, Experiment, where)
    _check(experiment, where)
    return experiment


def as_settings(data: Mapping[str, Any], where: str) -> dict[str, Setting]:
    """Return a table, and the tables in it, as one with dotted names.

    Raises
    ------
    UsageError
        If a value is none of text, number, truth or a list of these.
    """
    found: dict[str, Setting] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            inner = as_settings(value, f"{where}, {name}")
            found |= {f"{name}.{key}": one for key, one in inner.items()}
        else:
            found[name] = converted(value, Setting, f"{where}, {name}")
    return found


def _arranged(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a file's tables in the shape of ``Experiment``: what differs by scale, by scale."""
    found = dict(data)
    for key in sorted(data.keys() - _KEYS):
        raise UsageError(f"{where}: contains unknown field {key!r}", hint=HINT)
    for key, arranged in (
        ("axes", _axis),
        ("cells", _cell),
        ("controls", _cell),
        ("hypotheses", _point),
        ("metrics", _metric),
        ("published", _row),
        ("unsupported", _point),
    ):
        if isinstance(found.get(key), dict):
            raise UsageError(f"{where}, {key}: is a list of tables", hint=f"[[{key}]]")
        tables = converted(found.pop(key, []), list[dict[str, Any]], f"{where}, {key}")
        found[key] = [arranged(one, f"{where}, {key} {n}") for n, one in enumerate(tables, 1)]
    shared = found.pop("settings", {})
    found["scales"] = {s: _scale(found.pop(s, {}), shared, f"{where}, {s}") for s in SCALES}
    if "prepare" in found:
        found["prepare"] = _by_scale(found["prepare"], f"{where}, prepare")
    seed = _table(found.pop("seed", {}), f"{where}, seed")
    # Without quotes it is a date of TOML's.
    found["seed"] = {n: str(v) if n == "date" else v for n, v in seed.items()}
    return found


def _table(value: object, where: str) -> dict[str, Any]:
    found: dict[str, Any] = converted(value, dict[str, Any], where)
    return found


def _scale(own: object, shared: object, where: str) -> dict[str, Any]:
    table = _table(own, where)
    both = {**_table(shared, f"{where}, settings"), **_table(table.get("settings", {}), where)}
    table["settings"] = as_settings(both, f"{where}, settings")
    converted(table, Scale, where)
    return table


def _by_scale(value: object, where: str) -> dict[str, dict[str, Setting]]:
    """Return settings of which some, in tables of their own, are of one scale only."""
    table = _table(value, where)
    shared = {name: one for name, one in table.items() if name not in SCALES}
    return {
        scale: as_settings({**shared, **_table(table.get(scale, {}), where)}, where)
        for scale in SCALES
    }


def _axis(axis: dict[str, Any], where: str) -> dict[str, Any]:
    shared = axis.pop("values", ())
    values = {scale: axis.pop(scale, shared) for scale in SCALES}
    levels = _table(axis.pop("levels", {}), f"{where}, levels").items()
    if not isinstance(axis.get("baseline", {}), Mapping):
        axis["baseline"] = dict.fromkeys(SCALES, axis["baseline"])
    name = axis.get("name", "")
    return {
        "header": name,
        "setting": name,
        "values": values,
        **axis,
        "levels": {level: _by_scale(one, f"{where}, level {level}") for level, one in levels},
    }


def _cell(cell: dict[str, Any], where: str) -> dict[str, Any]:
    shared = _table(cell.pop("at", {}), where)
    own = {scale: _table(cell.pop(scale, {}), where) for scale in SCALES}
    return {**cell, "at": {s: as_settings({**shared, **at}, where) for s, at in own.items()}}


def _metric(metric: dict[str, Any], where: str) -> dict[str, Any]:
    del where
    return {"header": metric.get("name", ""), **metric}


def _row(row: dict[str, Any], where: str) -> dict[str, Any]:
    figures = {name: row.pop(name) for name in list(row) if name not in _ROW}
    return {**_point(row, where), "values": _each(figures, Figure, where)}


def _point(table: dict[str, Any], where: str) -> dict[str, Any]:
    points = {key: table[key] for key in ("at", "where") if key in table}
    return {**table, **{key: _each(at, Value, f"{where}, {key}") for key, at in points.items()}}


def _each(value: object, kind: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 - of that kind
    """Return a table whose keys are the author's: errors name them."""
    table = _table(value, where)
    return {name: converted(one, kind, f"{where}, {name}") for name, one in table.items()}


def _check(experiment: Experiment, where: str) -> None:
    """Refuse an experiment whose parts name what is not there."""
    if not experiment.metrics:
        raise UsageError(f"{where}: has no [[metrics]]", hint=HINT)
    for names_there, what in _named(experiment):
        _once(names_there, f"{where}, {what}")
    for settings, what in _settings(experiment):
        check_settings(settings, f"{where}, {what}")
    _check_axes(experiment, where)
    for name, known, what in _references(experiment):
        if name not in known:
            raise UsageError(
                f"{where}, {what}: there is no {name!r}",
                hint=f"known: {', '.join(filter(None, known))}",
            )


def _named(experiment: Experiment) -> Iterator[tuple[list[str], str]]:
    yield [axis.name for axis in experiment.axes], "axes"
    yield [metric.name for metric in experiment.metrics], "metrics"
    yield [one.id for one in experiment.hypotheses], "hypotheses"
    yield [cell.name for cell in (*experiment.cells, *experiment.controls)], "cells"


def _once(names_there: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names_there:
        if name in seen:
            raise UsageError(f"{what}: {name!r} stands there twice", hint="names differ")
        seen.add(name)


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


def _check_axes(experiment: Experiment, where: str) -> None:
    used_by_cells = experiment.design == "list"
    for axis in experiment.axes:
        here = f"{where}, axis {axis.name}"
        for scale in SCALES:
            values = axis.values[scale]
            if not values and not used_by_cells:
                raise UsageError(f"{here}: has no values for {scale}", hint=f"{scale} = [...]")
            _once(map(str, values), here)
            plain = [value for value in values if str(value) not in axis.levels]
            if plain and not is_setting(axis.setting):
                raise UsageError(
                    f"{here}: {plain[0]!r} is no level, and {axis.setting!r} no setting",
                    hint=f"[axes.levels.{plain[0]}] says what it stands for",
                )
        sizes = {len(axis.values[scale]) for scale in SCALES}
        if axis.paired and len(sizes) > 1:
            raise UsageError(f"{here}: is paired, and small and paper differ in length", hint=HINT)


def _references(experiment: Experiment) -> Iterator[tuple[str, Collection[str], str]]:
    """Yield each word that stands for something, what it may be, and where it stands."""
    axes = [axis.name for axis in experiment.axes]
    metrics = [metric.name for metric in experiment.metrics]
    cells = [cell.name for cell in (*experiment.cells, *experiment.controls)]
    yield experiment.design, DESIGNS, "design"
    yield experiment.pivot, [*axes, ""], "pivot"
    for metric in experiment.metrics:
        here = f"metric {metric.name}"
        yield metric.unit, UNITS, f"{here}, unit"
        yield metric.better, BETTER, f"{here}, better"
        yield metric.relative, ["", *RELATIVES], f"{here}, relative"
        if metric.relative:
            yield metric.to, axes, f"{here}, to"
    for one in experiment.hypotheses:
        here = f"hypothesis {one.id}"
        yield one.test, TESTS, f"{here}, test"
        yield one.metric, metrics, f"{here}, metric"
        yield one.along, [*axes, "cell"], f"{here}, along"
        yield one.across, [*axes, ""], f"{here}, across"
        if isinstance(one.segments, str):
            yield one.segments, SEGMENTS, f"{here}, segments"
    for number, row in enumerate(experiment.published, 1):
        yield row.cell, [*cells, ""], f"published {number}, cell"
        yield from ((name, metrics, f"published {number}") for name in row.values)
    for place, at in _points(experiment):
        yield from ((name, [*axes, "cell"], place) for name in at)
    if experiment.plot is not None:
        yield experiment.plot.kind, [*PLOTS, *FORMER_PLOTS], "plot, kind"
        yield experiment.plot.x, [*axes, "cell", ""], "plot, x"
        yield experiment.plot.y, [*metrics, ""], "plot, y"
        yield experiment.plot.series, [*axes, ""], "plot, series"


def _points(experiment: Experiment) -> Iterator[tuple[str, Mapping[str, Value]]]:
    yield from ((f"hypothesis {one.id}, where", one.where) for one in experiment.hypotheses)
    yield from ((f"unsupported {n}", one.at) for n, one in enumerate(experiment.unsupported, 1))
    yield from ((f"published {n}", row.at) for n, row in enumerate(experiment.published, 1))
