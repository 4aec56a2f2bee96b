"""What can be seen of a picture without eyes: nothing covers anything, and all has its unit."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from serverless_bench.job.operations import OperationKind
from serverless_bench.job.workload import open_workload
from serverless_bench.palette import HUES, LIGHT
from serverless_bench.reporters.plots import figure
from serverless_bench.rundir.run import Run
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.house.members import uses

_MS = S // 1000
_UNITS = ("seconds", "MB/s", "kB/s", ", ms", "functions", "per s")
_LONG = "a-name-that-somebody-has-given-to-a-run-and-that-does-not-end-here"


def _run(path: Path, count: int, *, workload: str = "write", executor: str = "local") -> Run:
    """Return a run of so many functions that start one after the other, of unlike rates."""
    kind = OperationKind.GET if workload == "read" else OperationKind.PUT
    of = replace(job(number=count, workload=workload), executor=executor)
    outcomes = []
    for i in range(count):
        start = i * 20 * _MS
        one = operation(kind=kind, start_ns=start, end_ns=start + (90 + i % 7) * _MS, size=10**7)
        outcomes.append(outcome(record(i, [one])))
    return saved(path, outcomes, of=of)


def _mixed(path: Path) -> Run:
    """Return a run of every kind of operation that has a size of nothing or more."""
    kinds = list(OperationKind)[:8]
    ops = [
        operation(i, kind=kind, start_ns=i * _MS, end_ns=(i + 2 + i % 5) * _MS, size=10**5)
        for i, kind in enumerate(kinds * 4)
    ]
    of = job(number=1, workload="mixed")
    return saved(path, [outcome(record(0, ops))], of=of)


def _faulty(path: Path) -> Run:
    """Return a run with failures, losses and throttled attempts."""
    outcomes = []
    for i in range(12):
        failed = i % 4 == 3
        one = operation(start_ns=0, end_ns=3 * S, size=10**8, error="throttled" if failed else None)
        tries = [attempt(size=0, error="throttled"), attempt(error="throttled" if failed else None)]
        outcomes.append(outcome(record(i, [one], attempts=tries)))
    return saved(path, [*outcomes, outcome(lost(12)), outcome(lost(13))])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Figure]:
    at = tmp_path_factory.mktemp("runs")
    made = [
        figure([_run(at / "two", 2), _run(at / "read", 64, workload="read"), _mixed(at / "mixed")]),
        figure([_run(at / "a" / _LONG, 1000), _faulty(at / "b" / _LONG)], latency=True),
        figure([_run(at / "imported", 3, executor="imported")]),
    ]
    for drawn in made:
        # One renderer for all questions about it: without a canvas of its own each makes another.
        FigureCanvasAgg(drawn)
        drawn.draw_without_rendering()
    return made


def test_no_words_cover_others_or_leave_the_picture(pictures: list[Figure]) -> None:
    for drawn in pictures:
        boxes = list(_words(drawn))
        for word, box in boxes:
            assert drawn.bbox.padded(1).containsx(box.x0), word
            assert drawn.bbox.padded(1).containsx(box.x1), word
        for (one, box), (other, another) in combinations(boxes, 2):
            assert not _overlap(box, another), (one, other)


def test_keys_cover_no_data(pictures: list[Figure]) -> None:
    for axes in _panels(pictures):
        if (legend := axes.get_legend()) is not None:
            for other in axes.figure.axes:
                inside = other.get_window_extent()
                assert not _overlap(legend.get_window_extent(), inside), axes.get_title(loc="left")


def test_every_axis_names_its_unit_and_begins_at_nothing(pictures: list[Figure]) -> None:
    for axes in _panels(pictures):
        labels = [axes.get_ylabel()]
        if axes.get_xlabel():
            labels.append(axes.get_xlabel())
        for label in labels:
            assert any(unit in label for unit in _UNITS), label
        assert axes.get_xlim()[0] == 0
        assert axes.get_yscale() == "log" or axes.get_ylim()[0] == 0


def test_every_panel_says_whose_it_is_and_what_its_colours_mean(pictures: list[Figure]) -> None:
    for axes in _panels(pictures):
        if not axes.get_ylabel().startswith("throttled"):
            assert axes.get_title(loc="left")
            assert axes.get_legend() is not None


@uses("workload mixed", "workload read")
def test_a_kind_has_one_colour_in_all_panels(pictures: list[Figure]) -> None:
    seen: dict[str, set[str]] = {}
    for axes in _panels(pictures):
        for line in axes.lines:
            if line.get_label() in set(OperationKind):
                seen.setdefault(str(line.get_label()), set()).add(to_hex(line.get_color()))
        for patch in axes.patches:
            if "in steps of" in str(patch.get_label()):
                name = axes.get_title(loc="left").split(":")[0]
                seen.setdefault(name, set()).add(to_hex(patch.get_edgecolor()))
    assert {"put", "get", "write", "read", "mixed"} <= seen.keys()
    for name, colors in seen.items():
        if name in {"write", "read", "mixed"} or name in set(OperationKind):
            hue = HUES.get(name) or open_workload(name).hue
            assert colors == {LIGHT.hues[hue]}, name


def _panels(pictures: list[Figure]) -> Iterator[Axes]:
    for drawn in pictures:
        yield from drawn.axes


def _words(drawn: Figure) -> Iterator[tuple[str, Bbox]]:
    """Yield what is written, with its place."""
    for axes in drawn.axes:
        ticks = {*axes.get_xticklabels(), *axes.get_yticklabels()}
        hidden = set() if axes.xaxis.get_visible() else {*axes.get_xticklabels()}
        for text in axes.findobj(Text):
            assert isinstance(text, Text)
            box = text.get_window_extent()
            shown = text.get_text() and text.get_visible() and text not in hidden
            # Ticks beyond the ends of their axis are there, and not shown.
            if shown and (text not in ticks or _beside(box, axes.get_window_extent())):
                yield text.get_text(), box


def _beside(box: Bbox, axes: Bbox) -> bool:
    x, y = box.get_points().mean(axis=0)
    inside = axes.padded(2)
    return bool(inside.x0 <= x <= inside.x1 or inside.y0 <= y <= inside.y1)


def _overlap(one: Bbox, other: Bbox) -> bool:
    shared = Bbox.intersection(one, other)
    # A pixel that two share is the edge of one letter.
    return shared is not None and shared.width > 1 and shared.height > 1
