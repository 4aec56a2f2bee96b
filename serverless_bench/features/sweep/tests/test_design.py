"""The cells of a sweep: their shapes, their length, and the text of their study."""

from dataclasses import replace

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.studies.loading import parse
from serverless_bench.features.studies.plan import Plan
from serverless_bench.features.sweep.design import ROUNDS, Sweep
from tests.house.members import uses

SWEEP = Sweep(
    jobs=("write", "read"),
    sizes=("4KiB", "1MiB"),
    in_flight=(1, 6, 64),
    axes={"client": ("wire", "boto3")},
    settings={"executor": "local", "retries": 2},
    cpus=4,
    budget_s=300,
)


@uses("workload read")
def test_a_sweep_is_a_study_with_a_cell_for_each_combination() -> None:
    study = parse(SWEEP.text(), "sweep")
    cells = Plan(study=study, scale="small", repeats=1).cells()
    assert len(cells) == SWEEP.cells == 24
    assert len({tuple(cell.at.values()) for cell in cells}) == 24
    (cell,) = (cell for cell in cells if [*cell.at.values()] == ["read", "1MiB", 64, "boto3"])
    settings = {name: cell.settings[name] for name in ("number", "threads", "client", "retries")}
    assert settings == {"number": 4, "threads": 16, "client": "boto3", "retries": 2}


@pytest.mark.parametrize(
    ("executor", "cpus", "shape"),
    [
        ("local", 4, (3, 2)),
        ("local", 1, (1, 6)),
        pytest.param("inline", 4, (1, 6), marks=uses("executor inline")),
        pytest.param("lambda", 4, (6, 1), marks=uses("executor lambda")),
    ],
)
def test_operations_in_flight_are_functions_times_threads(
    executor: str, cpus: int, shape: tuple[int, int]
) -> None:
    assert replace(SWEEP, settings={"executor": executor}, cpus=cpus).shape(6) == shape


def test_threads_may_be_given() -> None:
    given = replace(SWEEP, settings={"threads": 2})
    assert given.shape(64) == (32, 2)
    with pytest.raises(UsageError, match="1 operations in flight cannot be divided"):
        given.text()


def test_a_pilot_and_three_rounds_of_each_cell_fit_the_budget() -> None:
    assert SWEEP.run_s * SWEEP.cells * (1 + ROUNDS) < SWEEP.budget_s
    assert replace(SWEEP, budget_s=3600).run_s == 10
    # More time is first for longer runs, then for as many as a comparison of sweeps needs.
    assert [round(replace(SWEEP, budget_s=24 * s).run_s, 2) for s in (6, 8, 10, 20, 40)] == [
        0.8,
        1.3,
        1.8,
        2.18,
        5.52,
    ]
    with pytest.raises(UsageError, match="24 cells need 115 s"):
        _ = replace(SWEEP, budget_s=60).run_s
