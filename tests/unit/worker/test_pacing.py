"""Due times of operations, and those that did not start: with known times."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Load
from serverless_bench.metrics.latency_over_time import OverdueOperations, dropped_operations
from serverless_bench.rundir.record import Dropped
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT
from serverless_bench.worker.pacing import Schedule, _Even, at_most
from tests.data.runs import TARGET, job, operation, outcome, record, saved
from tests.tables import each_row

BEGIN_NS = 7 * NS_PER_S
EVEN, POISSON = "uniform", "poisson"


def schedule(
    rate: float | None, seconds: float | None, *, arrivals: str = EVEN, seed: int = 1
) -> Schedule:
    of = JobSpec(
        workload="write",
        target=TARGET,
        number=1,
        size=1,
        load=Load(rate=rate, arrivals=arrivals),
    )
    (spec, *_) = invocation_specs(of, run_id="r", created_ns=0)
    end_ns = None if seconds is None else BEGIN_NS + round(seconds * NS_PER_S)
    return Schedule(replace(spec, seed=seed), BEGIN_NS, end_ns)


def taken(of: Schedule, count: int = 10**6) -> list[int]:
    found: list[int] = []
    while len(found) < count and (instant_ns := of.take()) is not None:
        found.append(instant_ns)
    return found


@each_row(
    ("phase", "taken", "end_ns", "left"),
    [
        (0.0, 0, 100, [(0, 90, 10)]),
        (0.0, 0, 101, [(0, 100, 11)]),
        (0.0, 0, 1, [(0, 0, 1)]),
        (0.0, 0, 0, []),
        (0.0, 3, 100, [(30, 90, 7)]),
        (0.0, 9, 100, [(90, 90, 1)]),
        (0.0, 10, 100, []),
        (0.5, 0, 95, [(5, 85, 9)]),
        (0.5, 0, 96, [(5, 95, 10)]),
        (0.5, 0, 5, []),
        (0.5, 2, 26, [(25, 25, 1)]),
    ],
)
@each_row("begin_ns", [0, 1000])
def test_the_rest_of_even_distances_is_dropped(
    begin_ns: int, phase: float, taken: int, end_ns: int, left: list[tuple[int, int, int]]
) -> None:
    even = _Even(begin_ns, 10.0, phase)
    for _ in range(taken):
        even.advance()
    expected = [(begin_ns + first, begin_ns + last, count) for first, last, count in left]
    assert even.rest(begin_ns + end_ns) == expected


def test_even_distances_are_as_far_apart_as_the_rate_says() -> None:
    instants = taken(schedule(30.0, 2.0))
    assert len(instants) == 60
    assert BEGIN_NS <= instants[0] < BEGIN_NS + NS_PER_S / 30
    assert instants[-1] < BEGIN_NS + 2 * NS_PER_S
    assert all(abs(b - a - NS_PER_S / 30) <= 1 for a, b in pairwise(instants))


@pytest.mark.parametrize("arrivals", [EVEN, POISSON])
def test_functions_have_instants_of_their_own_and_always_the_same(arrivals: str) -> None:
    first, again, other = (
        taken(schedule(10.0, 3.0, arrivals=arrivals, seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.parametrize("arrivals", [EVEN, POISSON])
def test_taken_and_overdue_operations_are_all_scheduled_ones(arrivals: str) -> None:
    every = taken(schedule(20.0, 3.0, arrivals=arrivals))
    for count in (0, 1, 17, len(every) - 1, len(every)):
        some = schedule(20.0, 3.0, arrivals=arrivals)
        assert taken(some, count) == every[:count]
        left = some.untaken(None, None)
        assert sum(row.count for row in left) == len(every) - count
        assert {row.until_ns for row in left} <= {BEGIN_NS + 3 * NS_PER_S}
        if left:
            assert (left[0].first_ns, left[-1].last_ns) == (every[count], every[-1])
        if arrivals == POISSON:
            # So few are single rows.
            assert [row.first_ns for row in left] == [row.last_ns for row in left] == every[count:]


@each_row(
    ("seconds", "stopped_s", "free_s", "before_s", "until_s"),
    [
        (3.0, None, None, 3.0, 3.0),
        (3.0, None, 2.0, 3.0, 3.0),
        (3.0, None, 3.5, 3.0, 3.5),
        (3.0, 2.0, None, 2.0, 2.0),
        (3.0, 2.0, 2.5, 2.0, 2.5),
        (3.0, 4.0, None, 3.0, 3.0),
        (None, 2.0, 2.5, 2.0, 2.5),
    ],
)
@each_row("arrivals", [EVEN, POISSON])
def test_overdue_operations_waited_until_a_thread_was_free(
    arrivals: str,
    seconds: float | None,
    stopped_s: float | None,
    free_s: float | None,
    before_s: float,
    until_s: float,
) -> None:
    def at(instant_s: float | None) -> int | None:
        return None if instant_s is None else BEGIN_NS + round(instant_s * NS_PER_S)

    found = schedule(20.0, seconds, arrivals=arrivals).untaken(at(stopped_s), at(free_s))
    due = taken(schedule(20.0, before_s, arrivals=arrivals))
    assert sum(row.count for row in found) == len(due)
    assert found[-1].last_ns == due[-1]
    assert {row.until_ns for row in found} == {at(until_s)}


def test_without_an_end_all_is_taken() -> None:
    assert schedule(20.0, None).untaken(None, BEGIN_NS) == []


def test_a_closed_loop_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="a closed loop has no schedule"):
        schedule(None, 1.0)


def test_random_instants_come_at_the_rate_and_as_far_apart_as_chance_has_it() -> None:
    instants = taken(schedule(1000.0, 20.0, arrivals=POISSON))
    distances = np.diff([BEGIN_NS, *instants]) / NS_PER_S * 1000
    # The number has the square root for its standard deviation; distances have mean and
    # deviation 1, and e**-1 of them are above the mean.
    assert len(instants) == pytest.approx(20_000, abs=5 * 20_000**0.5)
    assert distances.std() == pytest.approx(1, abs=0.05)
    assert (distances > 1).mean() == pytest.approx(np.exp(-1), abs=0.02)


@each_row("seed", range(5))
def test_many_random_instants_are_rows_of_equal_counts(seed: int) -> None:
    one, twin = (schedule(1000.0, 128.0, arrivals=POISSON, seed=seed) for _ in range(2))
    taken(one, 3), taken(twin, 3)
    rows = one.untaken(None, None)
    assert rows[0].first_ns == twin.take()
    assert sum(row.count for row in rows) == pytest.approx(128_000, abs=5 * 128_000**0.5)
    assert 100 <= len(rows) <= 140
    assert {row.count for row in rows[:-1]} == {1000}
    assert 1 <= rows[-1].count <= 1000
    assert all(row.first_ns < row.last_ns for row in rows[:-1])
    assert all(before.last_ns < row.first_ns for before, row in pairwise(rows))
    # A row ends with the 999th after its first; the first of the next row comes after it.
    lengths_s = [(row.last_ns - row.first_ns) / NS_PER_S for row in rows[:-1]]
    assert np.mean(lengths_s) == pytest.approx(0.999, rel=0.02)
    assert rows[-1].last_ns < BEGIN_NS + 128 * NS_PER_S
    assert rows[-1].last_ns > BEGIN_NS + 127.9 * NS_PER_S


def row(first_ns: int, last_ns: int, count: int, until_ns: int = 1000) -> Dropped:
    return Dropped(first_ns=first_ns, last_ns=last_ns, count=count, until_ns=until_ns)


@each_row(
    ("count", "kept"),
    [
        (0, []),
        (1, [row(0, 0, 1)]),
        (4, [row(0, 30, 4)]),
        (10, [row(0, 90, 10)]),
        (11, [row(0, 90, 10), row(200, 200, 1)]),
        (13, [row(0, 90, 10), row(200, 240, 3)]),
        (20, [row(0, 90, 10), row(200, 380, 10)]),
        (99, [row(0, 90, 10), row(200, 380, 10)]),
    ],
)
def test_the_first_instants_of_rows(count: int, kept: list[Dropped]) -> None:
    assert at_most([row(0, 90, 10), row(200, 380, 10)], count) == kept


def test_an_instant_is_a_whole_nanosecond() -> None:
    (part,) = at_most([row(0, 100, 4)], 2)
    assert part == row(0, 33, 2)
    assert at_most([row(5, 5, 1)], 1) == [row(5, 5, 1)]


# Operations that did not start


def begun(path: Path, sizes: dict[str, list[int]], of: JobSpec, *rows: Dropped) -> Run:
    """Save a function that started operations of some kinds; a size stands for its class."""
    operations = [
        operation(n, kind=OperationKind(kind), size=size)
        for n, (kind, size) in enumerate((kind, size) for kind in sizes for size in sizes[kind])
    ]
    return saved(path, [outcome(replace(record(0, operations), dropped=rows))], of=of)


def undone(run: Run) -> OverdueOperations:
    everything = np.ones(len(run.operations["kind"]), dtype=np.bool_)
    return dropped_operations(run, np.array([True]), everything, run.operations["size"])


def mix(**weights: float) -> JobSpec:
    of = job(number=1, workload="mixed", size=None)
    return replace(of, load=Load(mix=tuple(weights.items()), rate=1.0))


def test_each_has_its_instant_and_its_wait(tmp_path: Path) -> None:
    rows = (
        row(100, 190, 10, until_ns=150),
        row(500, 500, 1, until_ns=700),
        row(600, 607, 2, until_ns=700),
    )
    run = begun(tmp_path, {"put": [1]}, job(number=1), *rows)
    found = undone(run)
    assert found.due_ns.tolist() == [*range(100, 200, 10), 500, 600, 607]
    assert found.waited_ns.tolist() == [50, 40, 30, 20, 10, 0, 0, 0, 0, 0, 200, 100, 93]
    nobody = dropped_operations(run, np.array([False]), np.array([True]), np.array([1]))
    assert (nobody.due_ns.tolist(), nobody.cells) == ([], ())
    assert nobody.mask("put").tolist() == []


def dealt(found: OverdueOperations) -> dict[tuple[str, int], int]:
    return {found.cells[number]: count for number, count in Counter(found.cell.tolist()).items()}


@each_row(
    ("of", "sizes", "shares"),
    [
        # In the shares of the started operations, if there is no mix ...
        (job(number=1), {"put": [1, 1, 1], "get": [2]}, {("put", 1): 3, ("get", 2): 1}),
        # ... else by its weights, for any started operations, and within a kind by their sizes.
        (
            mix(put=3.0, get=1.0),
            {"put": [1, 1, 4], "get": [2] * 9},
            {("put", 1): 2, ("put", 4): 1, ("get", 2): 1},
        ),
        (mix(put=1.0, get=3.0), {"put": [7]}, {("put", 7): 1, ("get", ABSENT): 3}),
        (job(number=1), {}, {("put", ABSENT): 1}),
        (job(number=1, workload="read"), {}, {("get", ABSENT): 1}),
        (
            replace(job(number=1, workload="read"), load=Load(split=2)),
            {},
            {("get_range", ABSENT): 1},
        ),
    ],
)
def test_they_are_dealt_in_proportion_and_evenly(
    tmp_path: Path, of: JobSpec, sizes: dict[str, list[int]], shares: dict[tuple[str, int], float]
) -> None:
    run = begun(tmp_path, sizes, of, row(0, 3_999, 4_000))
    found = undone(run)
    whole = sum(shares.values())
    assert dealt(found) == pytest.approx(
        {cell: 4_000 * share / whole for cell, share in shares.items()}, abs=3
    )
    for number, cell in enumerate(found.cells):
        in_each_tenth = (found.cell == number).reshape(10, -1).sum(axis=1)
        assert in_each_tenth == pytest.approx(400 * shares[cell] / whole, abs=3)
    assert found.cell.tolist() == undone(run).cell.tolist()


def test_those_of_a_kind_and_of_a_size(tmp_path: Path) -> None:
    sizes = {"put": [1, 4], "get": [1, 1]}
    found = undone(begun(tmp_path, sizes, job(number=1), row(0, 399, 400)))
    assert found.mask("put").sum() == pytest.approx(200, abs=2)
    assert found.mask("put", 4).sum() == pytest.approx(100, abs=2)
    assert (found.mask("put", 1) | found.mask("put", 4)).tolist() == found.mask("put").tolist()
    assert not found.mask("get", 4).any()
    assert not found.mask("head").any()
    assert (found.mask("put") ^ found.mask("get")).all()
