"""From the text of an experiment to its values; what is unknown or missing is an error."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from serverless_bench.errors import UsageError
from serverless_bench.experiments.checking import check
from serverless_bench.experiments.reading import Reader, as_settings, as_value
from serverless_bench.experiments.schema import (
    BETTER,
    DEFAULT_ERROR,
    DEFAULT_REPEATS,
    DEFAULT_THRESHOLD,
    DESIGNS,
    FORMER_PLOTS,
    PLOTS,
    RELATIVES,
    SCALES,
    SEGMENTS,
    TESTS,
    UNITS,
    Axis,
    Experiment,
    Hypothesis,
    Metric,
    NamedCell,
    Plot,
    Row,
    Scale,
    Seed,
    Settings,
    Unsupported,
    Value,
)


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
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"experiment {name}: is not TOML: {exc}") from exc
    reader = Reader(data, f"experiment {name}")
    experiment = _experiment(reader, name, text)
    reader.end()
    check(experiment)
    return experiment


def _experiment(reader: Reader, name: str, text: str) -> Experiment:
    shared = reader.raw("settings", dict, {})
    axes = tuple(_axis(table) for table in reader.tables("axes"))
    metrics = tuple(_metric(table) for table in reader.tables("metrics"))
    return Experiment(
        name=name,
        title=reader.text("title"),
        question=reader.text("question"),
        null_hypothesis=reader.text("null_hypothesis"),
        seed=_seed(reader.table("seed")),
        scales={scale: _scale(reader.table(scale), shared) for scale in SCALES},
        prepare=_prepare(reader),
        axes=axes,
        design=reader.choice("design", DESIGNS, "full"),
        cells=tuple(_cell(table) for table in reader.tables("cells")),
        controls=tuple(_cell(table) for table in reader.tables("controls")),
        unsupported=tuple(_unsupported(table) for table in reader.tables("unsupported")),
        metrics=metrics,
        pivot=reader.text("pivot", ""),
        hypotheses=tuple(_hypothesis(table) for table in reader.tables("hypotheses")),
        published=tuple(_row(table, metrics) for table in reader.tables("published")),
        errata=tuple(str(line) for line in reader.raw("errata", list, [])),
        plot=_plot(reader),
        text=text,
    )


def _seed(reader: Reader) -> Seed:
    seed = Seed(
        source=reader.text("source"),
        date=reader.text("date"),
        url=reader.text("url", ""),
        setup=reader.text("setup", ""),
    )
    reader.end()
    return seed


def _scale(reader: Reader, shared: Mapping[str, Any]) -> Scale:
    own = reader.raw("settings", dict, {})
    scale = Scale(
        about=reader.text("about", ""),
        min_bytes=reader.size("min_bytes"),
        repeats=reader.whole("repeats", DEFAULT_REPEATS),
        minutes=reader.amount("minutes", 0.0),
        seconds=reader.amount("seconds", 0.0),
        standard_error=reader.amount("standard_error", DEFAULT_ERROR),
        settings={
            **as_settings(shared, f"{reader.where}, settings"),
            **as_settings(own, f"{reader.where}, its settings"),
        },
    )
    reader.end()
    return scale


def _prepare(reader: Reader) -> dict[str, Settings] | None:
    data = reader.raw("prepare", dict, None)
    return None if data is None else _level(data, f"{reader.where}, prepare")


def _axis(reader: Reader) -> Axis:
    name = reader.text("name")
    shared = reader.values("values", ())
    values = {scale: reader.values(scale, shared) for scale in SCALES}
    levels = {
        level: _level(table, f"{reader.where}, level {level}")
        for level, table in reader.raw("levels", dict, {}).items()
    }
    told = reader.raw("baseline", object, None)
    if isinstance(told, dict):
        baseline = {scale: as_value(one, reader.where) for scale, one in told.items()}
    else:
        baseline = {} if told is None else dict.fromkeys(SCALES, as_value(told, reader.where))
    axis = Axis(
        name=name,
        header=reader.text("header", name),
        setting=reader.text("setting", name),
        values=values,
        levels=levels,
        baseline=baseline,
        paired=reader.flag("paired"),
    )
    reader.end()
    return axis


def _level(data: Mapping[str, Any], where: str) -> dict[str, Settings]:
    shared = as_settings({n: v for n, v in data.items() if n not in SCALES}, where)
    return {scale: {**shared, **as_settings(data.get(scale, {}), where)} for scale in SCALES}


def _cell(reader: Reader) -> NamedCell:
    name = reader.text("name")
    shared = as_settings(reader.raw("at", dict, {}), reader.where)
    at = {
        scale: {**shared, **as_settings(reader.raw(scale, dict, {}), reader.where)}
        for scale in SCALES
    }
    reader.end()
    return NamedCell(name=name, at=at)


def _unsupported(reader: Reader) -> Unsupported:
    found = Unsupported(at=reader.point("at"), reason=reader.text("reason"))
    reader.end()
    return found


def _metric(reader: Reader) -> Metric:
    name = reader.text("name")
    metric = Metric(
        name=name,
        header=reader.text("header", name),
        of=reader.text("of"),
        unit=reader.choice("unit", UNITS, ""),
        for_bytes=reader.size("for_bytes", 0),
        digits=reader.raw("digits", int, None),
        better=reader.choice("better", BETTER, "more"),
        relative=reader.choice("relative", ("", *RELATIVES), ""),
        to=reader.text("to", ""),
    )
    reader.end()
    return metric


def _hypothesis(reader: Reader) -> Hypothesis:
    expect = reader.raw("expect", object, None)
    found = Hypothesis(
        id=reader.text("id"),
        text=reader.text("text"),
        test=reader.choice("test", TESTS),
        metric=reader.text("metric"),
        along=reader.text("along"),
        segments=_segments(reader),
        where=reader.point("where"),
        across=reader.text("across", ""),
        expect=None if expect is None else as_value(expect, reader.where),
        threshold=float(reader.raw("threshold", int | float, DEFAULT_THRESHOLD)),
        published=reader.text("published", ""),
    )
    reader.end()
    return found


def _segments(reader: Reader) -> str | tuple[tuple[Value, Value], ...]:
    told = reader.raw("segments", str | list, "neighbours")
    if isinstance(told, str):
        if told not in SEGMENTS:
            raise reader.error(f"segments are {' or '.join(SEGMENTS)}, or pairs, not {told!r}")
        return told
    pairs = [tuple(as_value(one, reader.where) for one in pair) for pair in told]
    if any(len(pair) != 2 for pair in pairs):
        raise reader.error("a segment is a pair of values")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _row(reader: Reader, metrics: tuple[Metric, ...]) -> Row:
    values: dict[str, float | str | tuple[float, float]] = {}
    for metric in metrics:
        value = reader.raw(metric.name, int | float | str | list, None)
        if isinstance(value, list):
            if len(value) != 2:
                raise reader.error(f"{metric.name} is a number, a range of two, or words")
            values[metric.name] = (float(value[0]), float(value[1]))
        elif value is not None:
            values[metric.name] = value if isinstance(value, str) else float(value)
    row = Row(
        cell=reader.text("cell", ""),
        at=reader.point("at"),
        values=values,
        note=reader.text("note", ""),
    )
    reader.end()
    return row


def _plot(reader: Reader) -> Plot | None:
    if not reader.has("plot"):
        return None
    table = reader.table("plot")
    plot = Plot(
        kind=_plot_kind(table),
        x=table.text("x", ""),
        y=table.text("y", ""),
        series=table.text("series", ""),
        log=table.flag("log"),
    )
    table.end()
    return plot


def _plot_kind(table: Reader) -> str:
    told = table.choice("kind", (*PLOTS, *FORMER_PLOTS), "lines")
    return told if told in PLOTS else "bars"
