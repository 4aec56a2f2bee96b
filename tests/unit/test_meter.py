from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench import meter as meter_module
from serverless_bench.errors import DeadlineExceeded
from serverless_bench.meter import STEP_NS, Meter, Point, join_curves

points = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=8)


def curve(start: int, increments: list[tuple[int, int]]) -> list[Point]:
    times = accumulate((dt for dt, _ in increments), initial=start)
    moved = accumulate((n for _, n in increments), initial=0)
    return list(zip(times, moved, strict=True))


curves = st.lists(st.builds(curve, st.integers(0, 10**9), points), max_size=5)


@given(curves)
def test_joined_curves_keep_every_byte_and_the_time(several: list[list[Point]]) -> None:
    steps = join_curves(several, 0)
    assert sum(moved for _, moved in steps) == sum(c[-1][1] for c in several)
    assert all(length >= 0 and moved >= 0 for length, moved in steps)
    if several:
        assert sum(length for length, _ in steps) == max(c[-1][0] for c in several)
    if len(several) > 1:
        assert all(length <= STEP_NS for length, _ in steps)


@given(st.integers(0, 10**9), points)
def test_one_curve_is_kept_point_by_point(start: int, increments: list[tuple[int, int]]) -> None:
    only = curve(start, increments)
    steps = join_curves([only], 0)
    kept = list(accumulate((moved for _, moved in steps), initial=0))
    assert kept[-1] == only[-1][1]
    assert {t for t, _ in only} - {0} <= set(accumulate(length for length, _ in steps)) | {start}


class Ticking:
    """A monotonic clock that the test moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        monkeypatch.setattr(meter_module, "monotonic_ns", lambda: self.now_ns)


def new_meter(give_up_ns: int = 10**12) -> tuple[Meter, list[int]]:
    told: list[int] = []
    meter = Meter("put", part=0, number=0, wait_ns=0, give_up_ns=give_up_ns, on_moved=told.append)
    return meter, told


def test_points_are_at_most_a_quarter_of_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, told = new_meter()
    for _ in range(100):
        clock.now_ns += 50_000_000
        meter.moved(7)
    meter.stop()
    assert max(b - a for (a, _), (b, _) in pairwise(meter.curve)) <= 250_000_000
    assert meter.curve[-1][1] == meter.bytes == sum(told) == 700


def test_a_stall_shows_as_a_flat_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter()
    meter.moved(100)
    for _ in range(20):
        clock.now_ns += 50_000_000
        meter.moved(0)
    clock.now_ns += 1
    meter.moved(50)
    meter.stop()
    flat = [(b - a, n - m) for (a, m), (b, n) in pairwise(meter.curve)]
    assert sum(length for length, moved in flat if not moved) >= 700_000_000
    assert meter.curve[-1][1] == 150


def test_the_deadline_is_noticed_while_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter(give_up_ns=10**9)
    clock.now_ns = 10**9 + 1
    with pytest.raises(DeadlineExceeded):
        meter.moved(0)


@pytest.mark.parametrize("ends_with", ["moved", "sent", "stop"])
def test_what_moved_before_a_stall_is_not_spread_over_it(
    monkeypatch: pytest.MonkeyPatch, ends_with: str
) -> None:
    clock = Ticking(monkeypatch)
    meter, told = new_meter()
    # 10 bytes every 10 ms for 350 ms, of which the last 150 ms have no point of their own.
    for _ in range(35):
        clock.now_ns += 10_000_000
        meter.moved(10)
    clock.now_ns += 2_000_000_000
    if ends_with == "moved":
        meter.moved(10)
    elif ends_with == "sent":
        meter.sent()
    meter.stop()
    assert (350_000_000, 350) in meter.curve
    assert meter.curve[-1][1] == sum(told) == (360 if ends_with == "moved" else 350)
    during = [moved for at_ns, moved in meter.curve if at_ns > 350_000_000]
    assert all(moved - 350 <= 10 for moved in during)
    assert sum(moved for _, moved in join_curves([meter.curve], 0)) == meter.bytes
