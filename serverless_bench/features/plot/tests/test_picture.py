"""A picture of runs: its panels, their words, units and scales, and the files that hold it."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.plot.palette import HUES, LIGHT
from serverless_bench.features.plot.picture import figure
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run, load_run
from tests.data.pictures import panels, rows, title_of
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.house.members import uses

RECORDED = Path(__file__).parents[4] / "tests" / "recorded"
_LONG = "a-name-that-somebody-has-given-to-a-run-and-that-does-not-end-here"


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


def alone(run: Run, words: str, *, latency: bool = False) -> dict[str, Any]:
    """Return the panel of a run with a title that contains these words."""
    shown = panels(figure([run], latency=latency).spec)
    (panel,) = [panel for panel in shown if words in title_of(panel)]
    return panel


def titles(*runs: Run) -> list[str]:
    return [title_of(panel) for panel in panels(figure(runs).spec)]


def says(panel: dict[str, Any]) -> str:
    return " ".join(panel["title"]["subtitle"])


def rate_axis(panel: dict[str, Any]) -> list[float]:
    domain: list[float] = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    return domain


def test_the_time_of_what_never_began_is_drawn_as_a_lower_bound() -> None:
    drawn = rows(alone(load_run(RECORDED / "dropped"), "response time"))
    # The operations end together, so the times fall, and no bound is lower.
    assert all(row["dropped"] for row in drawn)
    assert [round(row["p50"]) for row in drawn[::5]] == [1023, 552, 50]


def test_each_job_is_a_line_and_losses_are_named(write: Run) -> None:
    panel = alone(write, "functions over time")
    lines = [row["what"] for row in rows(panel["layer"][0]) if row["n"] is None]
    assert sorted(lines) == ["1 failed function", *["functions"] * 5]
    assert title_of(panel) == "write: functions over time, 1 lost"
    assert (
        says(panel)
        == "A bar for each function, in order of start; line: operations in flight, at most 3."
    )
    colors = panel["layer"][0]["encoding"]["color"]["scale"]
    assert colors == {
        "domain": ["functions", "1 failed function"],
        "range": [LIGHT.hues["green"], LIGHT.failed],
    }
    low, high = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert (low, high >= 6) == (0, True)


def test_many_functions_show_a_sample_and_all_failed_ones(tmp_path: Path) -> None:
    made = [record(i, [operation(error="throttled" if i == 7 else None)]) for i in range(2100)]
    panel = alone(saved(tmp_path / "r", list(map(outcome, made))), "functions over time")
    lines = [row for row in rows(panel["layer"][0]) if row["n"] is None]
    assert len(lines) == 1051
    assert says(panel).startswith("A bar for every 2 functions, in order of start; line: ")


def test_rates_are_those_of_the_summary(write: Run) -> None:
    panel = alone(write, "rate per function")
    summary = summarize(write)
    assert summary.per_function_bytes_per_s is not None
    expected = summary.per_function_bytes_per_s["p50"] / 1e6
    assert rows(panel["layer"][1])[0]["rate"] == pytest.approx(expected, rel=1e-5)
    assert "Median (dashed): 33.3 MB/s." in says(panel)


def test_few_functions_are_dots_and_rates_start_at_zero(write: Run) -> None:
    few = alone(write, "rate per function")
    assert few["layer"][0]["mark"]["type"] == "point"
    assert [row["n"] for row in rows(few)] == [1, 2, 3, 4, 5]
    assert few["layer"][1]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_many_equal_rates_are_one_bar_that_can_be_seen(tmp_path: Path) -> None:
    run = saved(tmp_path / "r", [outcome(record(i, [operation()])) for i in range(30)])
    panel = alone(run, "rate per function")
    assert panel["layer"][0]["mark"]["type"] == "bar"
    (bar,) = [row for row in rows(panel) if row["n"]]
    end = panel["layer"][1]["encoding"]["x"]["scale"]["domain"][1]
    assert bar["n"] == 30
    assert bar["to"] - bar["from"] >= end / 50


def test_the_area_below_the_timeline_is_the_bytes(write: Run) -> None:
    steps = rows(alone(write, "throughput"))[:-1]
    area = sum(row["rate"] * (row["u"] - row["t"]) for row in steps)
    assert area * 1e6 == pytest.approx(summarize(write).bytes, rel=1e-5)


@uses("workload read")
def test_writes_are_green_and_reads_are_blue(write: Run, read: Run) -> None:
    drawn = [p for p in panels(figure([write, read]).spec) if "throughput" in p["title"]["text"]]
    colors = [panel["layer"][0]["mark"]["color"] for panel in drawn]
    assert colors == [LIGHT.hues["green"], LIGHT.hues["blue"]]


@uses("workload read")
def test_each_run_has_axes_of_its_own(write: Run, read: Run) -> None:
    first, second = list(panels(figure([write, read]).spec))[1::3]
    assert rate_axis(first) != rate_axis(second)
    ends = [panel["layer"][0]["encoding"]["x"]["scale"]["domainMax"] for panel in (first, second)]
    assert ends == [7.0, 1.0]


def test_average_and_steady_throughput_are_lines_and_in_the_title(tmp_path: Path) -> None:
    long = [outcome(record(i, [operation(end_ns=5 * S, size=10**9)])) for i in range(2)]
    panel = alone(saved(tmp_path / "r", long), "throughput")
    assert title_of(panel) == "write: throughput, average 400.0 MB/s, steady 400.0 MB/s"
    assert rows(panel["layer"][2]) == [
        {"what": "average", "level": 400},
        {"what": "steady", "level": 400},
    ]
    assert "Dashed: average, dotted: steady; grey: range" in says(panel)


def test_two_runs_of_one_workload_are_distinguished(tmp_path: Path) -> None:
    """Bug 4 of a first day: `plot a/1 b/1` had one colour and one title for both runs."""
    runs = [
        saved(tmp_path / side / "1", [outcome(record(0, [operation()]))]) for side in ("a", "b")
    ]
    drawn = list(panels(figure(runs, latency=True).spec))
    for name in ("write a/1", "write b/1"):
        assert sum(title_of(panel).startswith(f"{name}: ") for panel in drawn) == 3
    colors = {panel["layer"][0]["mark"]["color"] for panel in drawn[1::3]}
    assert colors == {LIGHT.hues["green"], "#0e4936"}


def test_long_names_that_differ_in_the_middle_are_numbered(tmp_path: Path) -> None:
    runs = [
        saved(tmp_path / f"a-long-name-{n}-of-some-series", [outcome(record(0, [operation()]))])
        for n in "12"
    ]
    assert len(set(titles(*runs))) == 6


@pytest.mark.parametrize(("elapsed_s", "steps"), [(0.3, "10 ms"), (9, "50 ms"), (3000, "20 s")])
def test_steps_suit_the_length_of_the_run(tmp_path: Path, elapsed_s: float, steps: str) -> None:
    run = saved(tmp_path / "r", [outcome(record(0, [operation(end_ns=round(elapsed_s * S))]))])
    assert says(alone(run, "throughput")).startswith(f"Bytes transferred in each {steps}. ")


def test_throttled_attempts_have_a_panel_by_prefix(tmp_path: Path) -> None:
    throttled = [attempt(size=0, error="throttled"), attempt()]
    run = saved(tmp_path / "r", [outcome(record(0, [operation()], attempts=throttled))])
    panel = alone(run, "throttled attempts per second")
    assert panel["encoding"]["color"]["scale"] == {"domain": ["sbench/"], "range": [LIGHT.failed]}


def test_a_worker_whose_clock_is_ahead_is_drawn_where_the_driver_saw_it(tmp_path: Path) -> None:
    ahead = operation(start_ns=60 * S, end_ns=61 * S)
    late = [replace(attempt(size=0, error="throttled"), end_ns=61 * S), attempt()]
    made = Outcome(submitted_ns=0, collected_ns=S, result=record(1, [ahead], attempts=late))
    run = saved(tmp_path / "r", [outcome(record(0, [operation()])), made])
    assert max(row["u"] for row in rows(alone(run, "throughput"))) == 1
    assert max(row["u"] for row in rows(alone(run, "throttled"))) <= 2
    functions = alone(run, "functions over time")["layer"]
    assert max(row["t"] for row in rows(functions[0])) == 1
    assert max(row["n"] for row in rows(functions[2])) == 2


def test_imported_progress_is_marked_as_assumed(tmp_path: Path) -> None:
    of = replace(job(number=1), executor="imported")
    run = saved(tmp_path / "r", [outcome(record(0, [operation()]))], of=of)
    assert "assumed even within each operation" in says(alone(run, "throughput"))


@pytest.fixture
def mixed(tmp_path: Path) -> Run:
    """A put and a get in each of many seconds."""
    ops = [
        operation(2 * n + m, kind=kind, start_ns=n * S, end_ns=(n + 1) * S)
        for n in range(200)
        for m, kind in enumerate((OperationKind.PUT, OperationKind.GET))
    ]
    return saved(tmp_path / "mixed", [outcome(record(0, ops))])


def test_each_kind_has_a_panel_for_its_latencies(mixed: Run) -> None:
    of_kinds = [p for p in panels(figure([mixed]).spec) if "latency" in title_of(p)]
    assert [title_of(p) for p in of_kinds] == ["write: latency of put", "write: latency of get"]
    scales = [p["layer"][0]["encoding"]["y"]["scale"] for p in of_kinds]
    assert scales[0]["type"] == "log"
    assert scales[0] == scales[1]
    tints = [p["layer"][0]["mark"]["color"] for p in of_kinds]
    assert tints == [LIGHT.hues[HUES[kind]] for kind in ("put", "get")]
    assert "99th percentile" in says(of_kinds[0])
    assert "Triangles" not in says(of_kinds[0])


def test_a_mixed_run_has_panels_for_its_latencies(mixed: Run, write: Run) -> None:
    assert [len(titles(*runs)) for runs in ([mixed], [write], [write, mixed])] == [5, 3, 8]


def test_latencies_of_fewer_than_three_segments_are_no_panel(tmp_path: Path) -> None:
    run = saved(tmp_path / "r", [outcome(record(0, [operation(), operation(1)]))])
    assert not any("latency" in title_of(p) for p in panels(figure([run], latency=True).spec))


def test_names_are_shown_as_they_are_without_control_characters(tmp_path: Path) -> None:
    names = ("currentColor", "$x$\x1b[31m")
    runs = [saved(tmp_path / name, [outcome(record(0, [operation()]))]) for name in names]
    shown = [title.removesuffix(": functions over time") for title in titles(*runs)[::3]]
    assert shown == ["write currentColor", r"write $x$\x1b[31m"]


def test_an_empty_run_can_be_drawn_in_each_format(write: Run, tmp_path: Path) -> None:
    nothing = saved(tmp_path / "nothing", [outcome(lost(0))])
    figure([nothing], latency=True).save(tmp_path / "nothing.png")
    throttled = [attempt(size=0, error="throttled"), attempt()]
    long = saved(tmp_path / _LONG, [outcome(record(0, [operation()], attempts=throttled))])
    drawn = figure([write, long], latency=True)
    begins = {"png": b"\x89PNG", "svg": b"<svg ", "pdf": b"%PDF", "": b"\x89PNG"}
    for form, begin in begins.items():
        path = tmp_path / f"picture.{form}".removesuffix(".")
        drawn.save(path)
        assert path.read_bytes().startswith(begin)
    again = tmp_path / "again.png"
    drawn.save(again)
    assert again.read_bytes() == (tmp_path / "picture.png").read_bytes()
    width, _ = struct.unpack(">II", again.read_bytes()[16:24])
    assert 1100 < width < 1400


def test_another_format_is_refused_in_a_line(write: Run, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"a picture is a \.png, \.svg or \.pdf file"):
        figure([write]).save(tmp_path / "picture.eps")
    with pytest.raises(ArchiveError, match="cannot write"):
        figure([write]).save(tmp_path / "none" / "picture.svg")
