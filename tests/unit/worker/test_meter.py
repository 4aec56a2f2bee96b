from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import DeadlineExceeded
from serverless_bench.clients.send_queue import AT_ONCE
from serverless_bench.worker import meter as meter_module
from serverless_bench.worker.meter import STEP_NS, Meter, Point, join_curves
from tests.tables import each_row

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
def test_one_curve_keeps_every_interval_with_bytes(
    start: int, increments: list[tuple[int, int]]
) -> None:
    only = curve(start, increments)
    steps = join_curves([only], 0)
    kept = list(accumulate((moved for _, moved in steps), initial=0))
    assert kept[-1] == only[-1][1]
    moving = {t for (t0, b0), (t1, b1) in pairwise(only) if b1 != b0 for t in (t0, t1)}
    assert moving <= set(accumulate((length for length, _ in steps), initial=0))
    # A time without bytes is one step, for any number of samples.
    assert all(one or other for (_, one), (_, other) in pairwise(steps))


HALF = STEP_NS // 2


@each_row(
    ("several", "steps"),
    [
        # 50 bytes over two steps and a half are 20 a step; the other 100 are in the first.
        (
            [[(0, 0), (2 * HALF, 100)], [(HALF, 0), (6 * HALF, 50)]],
            [(STEP_NS, 110), (STEP_NS, 20), (STEP_NS, 20)],
        ),
        # The last step has the remaining length; a byte at a border belongs to the later step.
        (
            [[(0, 0), (2 * HALF, 100)], [(HALF, 0), (5 * HALF, 50)]],
            [(STEP_NS, 112), (STEP_NS, 25), (HALF, 13)],
        ),
        # Bytes that move in no time at a border belong to the later step, but at the end to the
        # last one.
        (
            [[(0, 0), (2 * HALF, 0), (2 * HALF, 5)], [(0, 0), (4 * HALF, 0), (4 * HALF, 7)]],
            [(STEP_NS, 0), (STEP_NS, 12)],
        ),
        # A curve that ends directly after a border has its last byte there.
        (
            [[(0, 0), (2 * HALF + 1, 2 * HALF + 1)], [(0, 0), (0, 4)]],
            [(STEP_NS, STEP_NS + 4), (1, 1)],
        ),
        # A curve that ends at a border has no step after it.
        ([[(0, 0), (2 * HALF, 8)], [(0, 0), (4 * HALF, 0)]], [(STEP_NS, 8), (STEP_NS, 0)]),
        ([[(0, 0), (0, 3)], [(0, 0), (0, 4)]], [(0, 7)]),
        ([[(HALF, 0), (HALF, 3), (2 * HALF, 4)]], [(HALF, 0), (0, 3), (HALF, 1)]),
        ([], []),
    ],
)
@each_row("start_ns", [0, 7 * STEP_NS + 1])
def test_joined_curves_are_known(
    several: list[list[Point]], steps: list[tuple[int, int]], start_ns: int
) -> None:
    later = [[(start_ns + at, moved) for at, moved in one] for one in several]
    assert join_curves(later, start_ns) == steps


class Ticking:
    """A monotonic clock that the test moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        monkeypatch.setattr(meter_module, "monotonic_ns", lambda: self.now_ns)


def new_meter(deadline_ns: int = 10**12) -> tuple[Meter, list[tuple[int, int]]]:
    shown: list[tuple[int, int]] = []
    meter = Meter(
        *("put", 0, 0, 0, deadline_ns), on_moved=lambda moved, ns: shown.append((moved, ns))
    )
    return meter, shown


def test_points_are_at_most_a_quarter_of_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, shown = new_meter()
    for _ in range(101):
        clock.now_ns += 50_000_000
        meter.moved(7)
    meter.stop()
    assert max(b - a for (a, _), (b, _) in pairwise(meter.curve)) <= 250_000_000
    assert meter.curve[-1][1] == meter.bytes == 707
    # The sum of the shown bytes is known, so that the rest can be counted at the end.
    assert tuple(map(sum, zip(*shown, strict=True))) == (meter.shown_bytes, meter.shown_ns)
    assert (meter.shown_bytes, meter.shown_ns) == (700, 5_000_000_000)


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


def test_the_deadline_is_noticed_while_no_byte_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter(deadline_ns=10**9)
    clock.now_ns = 10**9 + 1
    with pytest.raises(DeadlineExceeded, match=r"^the function's deadline has passed$"):
        meter.moved(0)


def test_the_deadline_itself_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter(deadline_ns=10**9)
    clock.now_ns = 10**9
    meter.moved(1)
    assert meter.curve == [(0, 0), (10**9, 1)]


@pytest.mark.parametrize("reused", [False, True])
def test_reported_events_are_kept(*, reused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = Ticking(monkeypatch), list[int]()
    clock.now_ns = 5
    meter = Meter("put", 2, 3, 4, deadline_ns=10**12, on_moved=lambda *args: shown.extend(args))
    assert (meter.request, meter.part, meter.number, meter.wait_ns) == ("put", 2, 3, 4)
    nothing = ("status", "answered_ns", "date", "request_id", "host_id", "remote", "content_range")
    for name in (*nothing, "total_bytes", "first_byte_ns", "last_byte_sent_ns"):
        assert getattr(meter, name) is None
    assert meter.reused is False
    clock.now_ns = 10
    meter.connected("127.0.0.1:80", reused=reused)
    assert (meter.remote, meter.reused) == ("127.0.0.1:80", reused)
    clock.now_ns = 20
    meter.moved(7)
    clock.now_ns = 30
    meter.sent()
    clock.now_ns = 100_030
    meter.answered(201, {"date": "d", "x-amz-request-id": "r", "x-amz-id-2": "h"})
    assert (meter.status, meter.date, meter.request_id, meter.host_id) == (201, "d", "r", "h")
    clock.now_ns = 100_050
    meter.first_byte()
    clock.now_ns = 100_060
    meter.moved(1)
    clock.now_ns = 100_070
    meter.stop()
    assert (meter.start_ns, meter.last_byte_sent_ns, meter.answered_ns) == (5, 30, 100_030)
    assert (meter.first_byte_ns, meter.end_ns, meter.bytes) == (100_050, 100_070, 8)
    # No byte can move before a new connection is established.
    stood = [] if reused else [(10, 0)]
    assert meter.curve == [(5, 0), *stood, (30, 7), (100_050, 7), (100_070, 8)]
    # No sample is taken this early.
    assert (shown, meter.shown_ns) == ([], 0)


def test_a_point_is_a_step_after_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, shown = new_meter()
    for now_ns in (STEP_NS - 1, STEP_NS, 2 * STEP_NS - 1, 2 * STEP_NS):
        clock.now_ns = now_ns
        meter.moved(1)
    meter.stop()
    assert meter.curve == [(0, 0), (STEP_NS, 2), (2 * STEP_NS, 4)]
    assert shown == [(2, STEP_NS), (2, STEP_NS)]


def test_a_pause_of_a_step_is_a_stall_and_a_shorter_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for rest_ns, expected in ((STEP_NS - 1, []), (STEP_NS, [(1, 3)])):
        clock = Ticking(monkeypatch)
        meter, _ = new_meter()
        clock.now_ns = 1
        meter.moved(3)
        clock.now_ns += rest_ns
        meter.sent()
        meter.stop()
        assert meter.curve == [(0, 0), *expected, (1 + rest_ns, 3)]


@pytest.mark.parametrize("pause_ms", [50, 100, 200, 250, 300])
def test_a_pause_inside_a_body_is_no_time_in_which_bytes_flow(
    monkeypatch: pytest.MonkeyPatch, pause_ms: int
) -> None:
    """Eight pieces, 0.2 ms apart, with one pause in the middle, shorter than a step or longer."""
    clock = Ticking(monkeypatch)
    meter, _ = new_meter()
    meter.first_byte()
    for number in range(8):
        if number == 4:
            # Looks at the clock meanwhile are no bytes.
            for _ in range(0, pause_ms, 50):
                clock.now_ns += 50_000_000
                meter.moved(0)
        clock.now_ns += 200_000
        meter.moved(10)
    meter.stop()
    steps = join_curves([meter.curve], 0)
    assert sum(moved for _, moved in steps) == 80
    assert sum(took for took, _ in steps) == clock.now_ns
    assert sum(took for took, moved in steps if moved) < 2_000_000


def test_pieces_of_a_paced_body_are_no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter()
    meter.first_byte()
    for _ in range(8):
        clock.now_ns += 60_000_000
        meter.moved(10)
    meter.stop()
    assert all(moved for _, moved in join_curves([meter.curve], 0))


@pytest.mark.parametrize("ends_with", ["moved", "sent", "stop"])
def test_bytes_before_a_stall_are_not_spread_over_it(
    monkeypatch: pytest.MonkeyPatch, ends_with: str
) -> None:
    clock = Ticking(monkeypatch)
    meter, shown = new_meter()
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
    assert meter.curve[-1][1] == (360 if ends_with == "moved" else 350)
    # Late bytes are shown immediately.
    assert (
        meter.shown_bytes
        == sum(moved for moved, _ in shown)
        == (360 if ends_with == "moved" else 200)
    )
    during = [moved for at_ns, moved in meter.curve if at_ns > 350_000_000]
    assert all(moved - 350 <= 10 for moved in during)
    assert sum(moved for _, moved in join_curves([meter.curve], 0)) == meter.bytes


class Uploading:
    """A meter of an upload of 100 KiB, and the state of its socket."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Ticking(monkeypatch)
        monkeypatch.setattr(meter_module, "wall_ns", lambda: self.clock.now_ns + 10**18)
        self.meter, self.shown = new_meter()
        self.waiting = 0
        self.clock.now_ns = 10
        self.meter.sending(lambda: self.waiting)

    def go_on(self, ms: int, *, waiting: int, taken: int = 0) -> None:
        self.clock.now_ns += ms * 1_000_000
        self.waiting = waiting
        self.meter.moved(taken)


@pytest.mark.parametrize("status", [200, 503, None])
def test_bytes_of_an_upload_count_when_its_socket_says_so(
    monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    size = 100 * 1024
    upload = Uploading(monkeypatch)
    meter, clock = upload.meter, upload.clock
    # No sample in between; the kernel accepts everything at once.
    upload.go_on(49, taken=size, waiting=size)
    upload.go_on(1, waiting=size - 1000)
    # It keeps the known bytes, even if the request's head adds to the queue.
    upload.go_on(50, waiting=size - 900)
    meter.sent()
    upload.go_on(50, waiting=size - 3000)
    assert meter.last_byte_sent_ns is None
    at = [10, *(10 + ms * 1_000_000 for ms in (50, 100, 100, 150))]
    known = list(zip(at, (0, 1000, 1000, 1000, 3000), strict=True))
    assert meter.curve == [(0, 0), *known]
    assert sum(moved for moved, _ in upload.shown) == meter.shown_bytes == 3000
    clock.now_ns, upload.waiting = 10**9, 500
    if status is not None:
        meter.answered(status, {})
        upload.waiting = 0
        clock.now_ns += 7
    meter.stop()
    moved = size if status == 200 else size - 500
    assert meter.bytes == moved
    assert meter.curve == [(0, 0), *known, (10**9, moved)]


@each_row(("before_ms", "known"), [(2, True), (1, True), (0.999, False), (0, False), (-1, False)])
def test_an_acknowledgement_that_came_with_the_answer_is_not_known(
    monkeypatch: pytest.MonkeyPatch, before_ms: float, *, known: bool
) -> None:
    upload = Uploading(monkeypatch)
    upload.go_on(10, taken=20_000, waiting=20_000)
    upload.meter.sent()
    upload.clock.now_ns = 10**9
    instant_ns = 10**9 - round(before_ms * 1e6)
    upload.meter.acknowledged(instant_ns + 10**18)
    assert upload.meter.last_byte_sent_ns == (instant_ns if known else None)
    upload.meter.answered(200, {})
    upload.meter.stop()
    assert ((instant_ns, 20_000) in upload.meter.curve) == (known or before_ms == 0)
    assert upload.meter.curve[-1] == (10**9, 20_000)


@pytest.mark.parametrize(("after_ns", "known"), [(100_000, True), (99_999, False), (0, False)])
def test_of_an_answer_that_was_there_when_a_send_returned_no_time_is_known(
    monkeypatch: pytest.MonkeyPatch, after_ns: int, *, known: bool
) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter()
    clock.now_ns = 10_000_000
    meter.moved(4096)
    meter.sent()
    clock.now_ns += after_ns
    meter.answered(200, {})
    meter.stop()
    assert meter.last_byte_sent_ns == (10_000_000 if known else None)


def test_a_stamp_before_the_last_look_adds_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Uploading(monkeypatch)
    upload.go_on(200, taken=20_000, waiting=0)
    upload.clock.now_ns = 10**9
    upload.meter.acknowledged(10**8 + 10**18)
    assert upload.meter.last_byte_sent_ns == 10**8
    assert upload.meter.curve[-1] == (200_000_010, 20_000)


@pytest.mark.parametrize("size", [0, 4096, AT_ONCE, AT_ONCE + 1])
def test_only_what_goes_out_at_once_is_sent_when_it_is_taken(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    clock = Ticking(monkeypatch)
    meter, _ = new_meter()
    clock.now_ns = 5
    meter.moved(size)
    meter.sent()
    assert meter.last_byte_sent_ns == (5 if size <= AT_ONCE else None)
