"""The table of a sweep: what bounded each cell, where the knee is, and what is missing."""

from pathlib import Path
from typing import Any

from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.sweep.result import SweepResult, sweep_result


def runs(in_flight: int, *rates: float, cause: str = "answers", **more: Any) -> CellRuns:
    cell = Cell(
        slug=str(in_flight),
        at={"job": "write", "size": "4KiB", "in_flight": in_flight},
        settings={"number": in_flight, "threads": 1},
        paper_at={},
    )
    figures = {
        "throughput_bytes_per_s": 4096.0,
        "bytes": 4096.0,
        "put.p50_s": 0.01,
        "failed_attempts": 3.0,
        f"bottleneck.functions.{cause}": 4.0,
    }
    results = tuple(
        CellRun(path=Path("r"), figures={**figures, "ops_per_s": rate}) for rate in rates
    )
    return CellRuns(cell=cell, planned=len(rates), results=results, **more)


def result(*observed: CellRuns) -> SweepResult:
    return sweep_result(observed)


def test_the_knee_is_the_first_within_5_percent_of_the_best() -> None:
    found = result(runs(1, 100, 101, 99), runs(4, 400, 398, 402), runs(16, 404, 401, 400))
    ((at, knee),) = found.knees
    assert (at, knee.at) == ({"job": "write", "size": "4KiB"}, 4)
    assert "knee of write 4KiB: 4 in flight" in [*found.lines("text")]
    rising = result(runs(1, 100, 101), runs(4, 400, 398))
    assert any("still rises at 4" in line for line in rising.lines("text"))


def test_a_row_has_medians_and_the_cause() -> None:
    found = result(runs(2, 30, 10, 20))
    text = "\n".join(found.lines("text"))
    (row,) = found.to_json()["rows"]
    assert (row["ops_per_s"], row["p50_s"], row["p99_s"], row["runs"]) == (20, 0.01, None, 3)
    assert (row["failed_attempts"], row["client_bound"]) == (3, False)
    assert "2 (2 x 1)" in text
    assert "*" not in text
    assert (
        found.headline
        == "4.1 kB/s at write 4KiB 2 in flight; 20 operations/s at write 4KiB 2 in flight"
    )


def test_a_cell_that_the_client_bounded_is_marked() -> None:
    found = result(runs(1, 10, cause="client"), runs(4, 10))
    lines = [*found.lines("text")]
    assert [line.endswith("client CPU *") for line in lines[1:3]] == [True, False]
    assert any(line.startswith("* The functions bounded the rate") for line in lines)


def test_a_cell_without_runs_has_a_row_and_the_reason() -> None:
    missing = CellRun(path=Path("r"), figures=None, problem="not run")
    cell = runs(1).cell
    found = result(CellRuns(cell=cell, planned=1, results=(missing,)))
    assert not found.complete
    assert found.headline == "no run counts"
    assert [*found.lines("text")][-1] == "write 4KiB 1 in flight: 1 of 1 runs: not run"
    assert found.drawings()[0].tiles == ()
