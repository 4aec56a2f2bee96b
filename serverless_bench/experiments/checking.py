"""Whether the parts of an experiment know each other."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from serverless_bench.errors import UsageError
from serverless_bench.experiments.schema import SCALES, Experiment, Settings, Value
from serverless_bench.experiments.settings import check_settings, is_setting


def check(experiment: Experiment) -> None:
    """Refuse an experiment whose parts name what is not there.

    Raises
    ------
    UsageError
        With the first part that is wrong.
    """
    where = f"experiment {experiment.name}"
    if not experiment.metrics:
        raise UsageError(f"{where}: has no [[metrics]]")
    for names, what in _named(experiment):
        _once(names, f"{where}, {what}")
    for settings, what in _settings(experiment):
        check_settings(settings, f"{where}, {what}")
    _check_axes(experiment, where)
    for name, known, what in _references(experiment):
        if name not in known:
            raise UsageError(
                f"{where}, {what}: there is no {name!r}", hint=f"known: {', '.join(known)}"
            )


def _named(experiment: Experiment) -> Iterator[tuple[list[str], str]]:
    yield [axis.name for axis in experiment.axes], "axes"
    yield [metric.name for metric in experiment.metrics], "metrics"
    yield [one.id for one in experiment.hypotheses], "hypotheses"
    yield [cell.name for cell in (*experiment.cells, *experiment.controls)], "cells"


def _once(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"{what}: {name!r} stands there twice")
        seen.add(name)


def _settings(experiment: Experiment) -> Iterator[tuple[Settings, str]]:
    for name, scale in experiment.scales.items():
        yield scale.settings, f"settings of {name}"
    if experiment.prepare is not None:
        yield from ((one, "prepare") for one in experiment.prepare.values())
    for axis in experiment.axes:
        for level, by_scale in axis.levels.items():
            for settings in by_scale.values():
                yield settings, f"level {level} of {axis.name}"
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
            raise UsageError(f"{here}: is paired, and small and paper differ in length")


def _references(experiment: Experiment) -> Iterator[tuple[str, Collection[str], str]]:
    axes = [axis.name for axis in experiment.axes]
    metrics = [metric.name for metric in experiment.metrics]
    cells = [cell.name for cell in (*experiment.cells, *experiment.controls)]
    yield from _of_points(experiment, axes)
    for metric in experiment.metrics:
        if metric.relative:
            yield metric.to, axes, f"metric {metric.name}, to"
    for one in experiment.hypotheses:
        yield one.metric, metrics, f"hypothesis {one.id}, metric"
        yield one.along, [*axes, "cell"], f"hypothesis {one.id}, along"
        yield one.across, [*axes, ""], f"hypothesis {one.id}, across"
    for number, row in enumerate(experiment.published, 1):
        yield row.cell, [*cells, ""], f"published {number}, cell"
    yield experiment.pivot, [*axes, ""], "pivot"
    if experiment.plot is not None:
        yield experiment.plot.x, [*axes, "cell", ""], "plot, x"
        yield experiment.plot.y, [*metrics, ""], "plot, y"
        yield experiment.plot.series, [*axes, ""], "plot, series"


def _of_points(
    experiment: Experiment, axes: list[str]
) -> Iterator[tuple[str, Collection[str], str]]:
    points: list[tuple[str, Mapping[str, Value]]] = [
        *((f"hypothesis {one.id}, where", one.where) for one in experiment.hypotheses),
        *((f"unsupported {n}", one.at) for n, one in enumerate(experiment.unsupported, 1)),
        *((f"published {n}", row.at) for n, row in enumerate(experiment.published, 1)),
    ]
    for what, point in points:
        for name in point:
            yield name, [*axes, "cell"], what
