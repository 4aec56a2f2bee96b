"""A picture of runs: its panels, their words, units and scales, and the files that hold it."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.plot.palette import LIGHT, SHAPES
from serverless_bench.features.plot.picture import figure
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run, load_run
from tests.data.pictures import panels, rows
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
    (panel,) = [panel for panel in shown if words in panel["title"]["text"]]
    return panel


def titles(*runs: Run) -> list[str]:
    return [panel["title"]["text"] for panel in panels(figure(runs).spec)]


def says(panel: dict[str, Any]) -> str:
    return " ".join(panel["title"]["subtitle"])


def rate_axis(panel: dict[str, Any]) -> list[float]:
    domain: list[float] = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    return domain


def test_the_time_of_what_never_began_is_drawn_as_a_lower_bound() -> None:
    drawn = rows(alone(load_run(RECORDED / "dropped"), "response time"))
    # The operations end together, so the times fall, and no bound is lower.
    assert {row["bound"] for row in drawn} == {"at least"}
    p99 = [round(row["ms"]) for row in drawn if row["p"] == "p50"]
    assert p99[::5] == [1023, 552, 50]


def test_each_job_is_a_line_and_losses_are_named(write: Run) -> None:
    panel = alone(write, "functions over time")
    lines = [row["what"] for row in rows(panel["layer"][0]) if row["n"] is None]
    assert sorted(lines) == ["1 failed function", *["functions"] * 5]
    assert panel["title"]["text"] == "write: functions over time, 1 lost"
    colors = panel["layer"][0]["encoding"]["color"]["scale"]
    assert colors == {
        "domain": ["functions", "1 failed function", "operations in flight, at most 3"],
        "range": [LIGHT.hues["green"], LIGHT.failed, LIGHT.ink],
    }
    low, high = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert (low, high >= 6) == (0, True)


def test_many_functions_show_a_sample_and_all_failed_ones(tmp_path: Path) -> None:
    made = [record(i, [operation(error="throttled" if i == 7 else None)]) for i in range(2100)]
    panel = alone(saved(tmp_path / "r", list(map(outcome, made))), "functions over time")
    lines = [row for row in rows(panel["layer"][0]) if row["n"] is None]
    assert len(lines) == 1051
    assert says(panel) == "A line for every 2 functions, in the order in which they began."


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


def test_many_equal_rates_are_one_bar(tmp_path: Path) -> None:
    run = saved(tmp_path / "r", [outcome(record(i, [operation()])) for i in range(30)])
    panel = alone(run, "rate per function")
    assert panel["layer"][0]["mark"]["type"] == "bar"
    assert [row["n"] for row in rows(panel) if row["n"]] == [30]


def test_the_area_below_the_timeline_is_the_bytes(write: Run) -> None:
    steps = rows(alone(write, "throughput, MB/s"))[:-1]
    area = sum(row["rate"] * (row["u"] - row["t"]) for row in steps)
    assert area * 1e6 == pytest.approx(summarize(write).bytes, rel=1e-5)


@uses("workload read")
def test_writes_are_green_and_reads_are_blue(write: Run, read: Run) -> None:
    drawn = [p for p in panels(figure([write, read]).spec) if "throughput" in p["title"]["text"]]
    colors = [panel["layer"][0]["mark"]["color"] for panel in drawn]
    assert colors == [LIGHT.hues["green"], LIGHT.hues["blue"]]


@uses("workload read")
def test_each_run_has_a_time_axis_of_its_own_and_one_scale(write: Run, read: Run) -> None:
    first, second = list(panels(figure([write, read]).spec))[4:]
    assert rate_axis(first) == rate_axis(second)
    ends = [panel["layer"][0]["encoding"]["x"]["scale"]["domainMax"] for panel in (first, second)]
    assert ends == [7.0, 1.0]


@uses("workload read")
def test_a_run_that_would_be_flat_beside_another_has_a_scale_of_its_own(
    read: Run, tmp_path: Path
) -> None:
    slow = saved(tmp_path / "slow", [outcome(record(0, [operation()]))])
    fast, slower = list(panels(figure([read, slow]).spec))[4:]
    assert titles(read, slow)[4:] == ["read: throughput, MB/s", "write: throughput, kB/s"]
    assert rate_axis(fast) != rate_axis(slower)


def test_two_runs_of_one_workload_are_distinguished(tmp_path: Path) -> None:
    """Bug 4 of a first day: `plot a/1 b/1` had one colour and one title for both runs."""
    runs = [
        saved(tmp_path / side / "1", [outcome(record(0, [operation()]))]) for side in ("a", "b")
    ]
    drawn = list(panels(figure(runs, latency=True).spec))
    for name in ("write a/1", "write b/1"):
        assert sum(panel["title"]["text"].startswith(f"{name}: ") for panel in drawn) == 4
    colors = {panel["layer"][0]["mark"]["color"] for panel in drawn[4:6]}
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
    assert {row["what"] for row in rows(functions[2])} == {"operations in flight, at most 2"}


def test_imported_progress_is_marked_as_assumed(tmp_path: Path) -> None:
    of = replace(job(number=1), executor="imported")
    run = saved(tmp_path / "r", [outcome(record(0, [operation()]))], of=of)
    assert "assumed even within each operation" in says(alone(run, "throughput"))


def test_latencies_are_drawn_by_kind(write: Run) -> None:
    panel = alone(write, "latency, ms", latency=True)
    # All five puts took 3 s, and are too few for several segments.
    assert [(row["p"], row["ms"]) for row in rows(panel)] == [("p50", 3000), ("p99", 3000)]
    scales = {name: panel["encoding"][name]["scale"] for name in ("color", "shape")}
    assert scales["color"] == {"domain": ["put"], "range": [LIGHT.of("put")]}
    assert scales["shape"] == {"domain": ["put"], "range": [SHAPES["put"]]}
    assert panel["encoding"]["y"]["scale"]["type"] == "log"


def test_a_mixed_run_has_a_panel_for_its_latencies(write: Run, tmp_path: Path) -> None:
    ops = [operation(), operation(1, kind=OperationKind.GET)]
    mixed = saved(tmp_path / "mixed", [outcome(record(0, ops))])
    assert [len(titles(*runs)) for runs in ([mixed], [write], [write, mixed])] == [4, 3, 7]


def test_names_are_shown_as_they_are_without_control_characters(tmp_path: Path) -> None:
    names = ("currentColor", "$x$\x1b[31m")
    runs = [saved(tmp_path / name, [outcome(record(0, [operation()]))]) for name in names]
    shown = [title.removesuffix(": functions over time") for title in titles(*runs)[:4:2]]
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
