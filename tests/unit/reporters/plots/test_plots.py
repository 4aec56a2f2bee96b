import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from serverless_bench.analysis.summary import summarize
from serverless_bench.cli.main import main
from serverless_bench.job.operations import OperationKind
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots import (
    draw_jobs,
    draw_latency,
    draw_rates,
    draw_throughput,
    figure,
)
from serverless_bench.reporters.plots.style import styles_of
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved

RECORDED = Path(__file__).parents[3] / "recorded"


@pytest.fixture
def write(tmp_path: Path) -> Run:
    outcomes = [
        outcome(record(i, [operation(start_ns=i * S, end_ns=(i + 3) * S, size=10**8)]))
        for i in range(5)
    ]
    failed = record(5, [operation(error="throttled")])
    return saved(tmp_path / "write", [*outcomes, outcome(failed), outcome(lost(6))])


@pytest.fixture
def read(tmp_path: Path) -> Run:
    one = operation(kind=OperationKind.GET, size=10**8)
    of = job(number=1, workload="read", size=None)
    return saved(tmp_path / "read", [outcome(record(0, [one]))], of=of)


@pytest.fixture
def nothing(tmp_path: Path) -> Run:
    return saved(tmp_path / "nothing", [outcome(lost(0))])


@pytest.fixture
def axes() -> Axes:
    return Figure().subplots()


def test_the_time_of_what_never_began_is_drawn_as_a_lower_bound(axes: Axes) -> None:
    draw_latency(load_run(RECORDED / "overdue"), axes)
    bounds = [line for line in axes.lines if line.get_marker() == "^"]
    answered = [line for line in axes.lines if line not in bounds]
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in answered])
    # It ends at one instant: the times fall, and no answer was sooner.
    assert drawn[np.isfinite(drawn)].round().tolist() == []
    assert np.asarray(bounds[0].get_ydata()).round().tolist()[::5] == [1023, 552, 50]


def test_each_job_is_a_line_and_losses_are_named(write: Run, axes: Axes) -> None:
    draw_jobs(write, axes)
    ok, failed = axes.collections
    assert (len(ok.get_paths()), len(failed.get_paths())) == (5, 1)
    assert axes.get_title(loc="left") == "write: functions over time, 1 lost"
    labels = [text.get_text() for text in _texts(axes)]
    assert labels == ["function", "1 failed function", "operations in flight, at most 3"]


def test_rates_are_those_of_the_summary(write: Run, axes: Axes) -> None:
    draw_rates(write, axes)
    summary = summarize(write)
    assert summary.per_function_bytes_per_s is not None
    expected = summary.per_function_bytes_per_s["p50"] / 1e6
    assert axes.lines[0].get_xdata()[0] == pytest.approx(expected)  # type: ignore[index]


def test_the_area_below_the_timeline_is_the_bytes(write: Run, axes: Axes) -> None:
    draw_throughput(write, axes)
    stairs, _band = axes.patches
    values, edges, _ = stairs.get_data()  # type: ignore[attr-defined]
    assert float(np.sum(values * np.diff(edges))) * 1e6 == pytest.approx(summarize(write).bytes)


def test_writes_are_green_and_reads_are_blue(write: Run, read: Run) -> None:
    drawn = figure([write, read])
    assert len(drawn.axes) == 6
    colors = [to_rgb(axes.patches[0].get_facecolor()) for axes in drawn.axes[4:]]
    assert colors[0][1] == max(colors[0])
    assert colors[1][2] == max(colors[1])


def test_long_names_that_differ_in_the_middle_are_numbered(tmp_path: Path) -> None:
    runs = [
        saved(tmp_path / f"a-long-name-{n}-of-some-series", [outcome(record(0, [operation()]))])
        for n in "12"
    ]
    assert len({style.label for style in styles_of(runs)}) == 2


def test_each_run_has_a_time_axis_of_its_own_and_one_scale(write: Run, read: Run) -> None:
    first, second = figure([write, read]).axes[4:]
    assert first.get_ylim() == second.get_ylim()
    assert first.get_xlim() != second.get_xlim()


def test_a_run_that_would_be_flat_beside_another_has_a_scale_of_its_own(
    read: Run, tmp_path: Path
) -> None:
    slow = saved(tmp_path / "slow", [outcome(record(0, [operation()]))])
    fast, slower = figure([read, slow]).axes[4:]
    assert (fast.get_ylabel(), slower.get_ylabel()) == ("throughput, MB/s", "throughput, kB/s")
    assert fast.get_ylim() != slower.get_ylim()


def test_two_runs_of_one_workload_are_told_apart(tmp_path: Path) -> None:
    """Bug 4 of a first day: `plot a/1 b/1` had one colour and one title for both."""
    runs = [
        saved(tmp_path / side / "1", [outcome(record(0, [operation()]))]) for side in ("a", "b")
    ]
    drawn = figure(runs, latency=True)
    titles = [axes.get_title(loc="left") for axes in drawn.axes]
    for name in ("write a/1", "write b/1"):
        assert sum(title.startswith(name) for title in titles) == 4
    timelines = drawn.axes[4:6]
    colors = {to_rgb(axes.patches[0].get_facecolor()) for axes in timelines}
    labels = {_texts(axes)[0].get_text() for axes in timelines}
    assert (len(colors), len(labels)) == (2, 2)


def test_functions_are_whole_and_begin_at_nothing(write: Run, axes: Axes) -> None:
    draw_jobs(write, axes)
    assert axes.get_ylim()[0] == 0
    assert all(float(tick).is_integer() for tick in axes.get_yticks())


def test_few_functions_are_dots_and_many_a_histogram(write: Run, axes: Axes) -> None:
    draw_rates(write, axes)
    assert len(np.asarray(axes.lines[0].get_xdata())) == 5
    assert not axes.patches
    assert [text.get_text() for text in _texts(axes)] == ["median 33.3 MB/s"]


def test_rates_begin_at_nothing(write: Run, axes: Axes) -> None:
    """Functions that differ by a hundredth do not stand at both ends."""
    draw_rates(write, axes)
    assert axes.get_xlim()[0] == 0


def test_latencies_are_plain_milliseconds(tmp_path: Path, axes: Axes) -> None:
    short = operation(start_ns=0, end_ns=6_000_000)
    draw_latency(saved(tmp_path / "r", [outcome(record(0, [short]))]), axes)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    assert axes.get_ylabel() == "latency, ms"
    labels = {label.get_text() for label in axes.get_yticklabels(which="both")}
    assert "6" in labels
    assert all(label.replace(".", "").isdecimal() for label in labels if label)


@pytest.mark.parametrize(("span_s", "steps"), [(0.3, "10 ms"), (9, "100 ms"), (3000, "50 s")])
def test_steps_suit_the_length_of_the_run(
    tmp_path: Path, axes: Axes, span_s: float, steps: str
) -> None:
    run = saved(tmp_path / "r", [outcome(record(0, [operation(end_ns=round(span_s * S))]))])
    draw_throughput(run, axes)
    assert _texts(axes)[0].get_text() == f"write, in steps of {steps}"


def test_a_second_run_on_the_same_axes_has_the_unit_of_the_first(
    read: Run, tmp_path: Path, axes: Axes
) -> None:
    long = saved(tmp_path / "long", [outcome(record(0, [operation(end_ns=9 * S)]))])
    draw_throughput(read, axes)
    draw_throughput(long, axes)
    heights = [float(np.max(patch.get_data().values)) for patch in axes.patches]  # type: ignore[attr-defined]
    assert axes.get_ylabel() == "throughput, MB/s"
    assert axes.get_title(loc="left") == "throughput of all functions together"
    assert max(heights) > 100
    assert min(heights) == pytest.approx(1000 / 9 / 1e6, rel=0.1)
    assert axes.get_xlim() == (0, 9)


def test_throttles_have_a_scale_of_their_own_also_beside_another_run(
    tmp_path: Path, axes: Axes
) -> None:
    throttled = [attempt(size=0, error="throttled"), attempt()]
    one = saved(tmp_path / "r", [outcome(record(0, [operation()], attempts=throttled))])
    draw_throughput(one, axes)
    draw_throughput(one, axes)
    labels = [text.get_text() for text in _texts(axes)]
    assert labels.count("throttled attempts, sbench/") == 1
    own, beside = axes.figure.axes
    assert (own, beside.get_ylabel()) == (axes, "throttled attempts per s")
    assert [to_hex(patch.get_edgecolor()) for patch in beside.patches] == [LIGHT.failed] * 2


def test_a_worker_whose_clock_is_ahead_is_drawn_where_the_driver_saw_it(
    tmp_path: Path, axes: Axes
) -> None:
    ahead = operation(start_ns=60 * S, end_ns=61 * S)
    late = [replace(attempt(size=0, error="throttled"), end_ns=61 * S), attempt()]
    made = Outcome(submitted_ns=0, collected_ns=S, result=record(1, [ahead], attempts=late))
    run = saved(tmp_path / "r", [outcome(record(0, [operation()])), made])
    draw_throughput(run, axes)
    assert axes.get_xlim() == (0, 1)
    assert len(axes.figure.axes[1].patches[0].get_data()[0]) <= 2  # type: ignore[attr-defined]
    beside = Figure().subplots()
    draw_jobs(run, beside)
    assert beside.get_xlim() == (0, 1)
    assert beside.lines[0].get_label() == "operations in flight, at most 2"


def test_imported_progress_is_said_to_be_assumed(tmp_path: Path, axes: Axes) -> None:
    of = replace(job(number=1), executor="imported")
    run = saved(tmp_path / "r", [outcome(record(0, [operation()]))], of=of)
    draw_throughput(run, axes)
    assert "even within each operation" in _texts(axes)[0].get_text()


def _texts(axes: Axes) -> list[Text]:
    legend = axes.get_legend()
    return [] if legend is None else legend.get_texts()


def test_latencies_are_drawn_by_kind(write: Run, axes: Axes) -> None:
    draw_latency(write, axes)
    p50, p99 = axes.lines
    assert (p50.get_label(), axes.get_yscale()) == ("put", "log")
    # All five puts took 3 s, and are too few for more than one segment.
    assert np.asarray(p99.get_ydata()).tolist() == [3000.0]


def test_a_mixed_run_has_a_panel_for_its_latencies(write: Run, tmp_path: Path) -> None:
    ops = [operation(), operation(1, kind=OperationKind.GET)]
    mixed = saved(tmp_path / "mixed", [outcome(record(0, ops))])
    assert len(figure([mixed]).axes) == 4
    assert len(figure([write]).axes) == 3
    assert len(figure([write], latency=True).axes) == 4
    assert len(figure([write, mixed]).axes) == 7


def test_a_run_of_nothing_can_be_drawn(nothing: Run, tmp_path: Path) -> None:
    figure([nothing], latency=True).savefig(tmp_path / "nothing.png")


def test_a_figure_is_saved(write: Run, read: Run, tmp_path: Path) -> None:
    figure([write, read]).savefig(tmp_path / "both.png")
    assert (tmp_path / "both.png").stat().st_size > 10_000


def test_what_draws_at_its_end_asks_for_the_library_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo"]) == 3
    assert "plots need 'matplotlib'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
