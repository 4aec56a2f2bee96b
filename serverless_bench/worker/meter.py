"""Stopwatches of an attempt.

``Meter`` is the counterpart of ``clients.base.Exchange``: the client reports events, the meter
reads the clock. Together with ``operation`` this is all code that reads a clock around I/O.
Instants here are monotonic; ``EpochClock.origin_ns`` converts them to nanoseconds since the epoch
when a record is built.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Final

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.errors import DeadlineExceeded, OperationError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.send_queue import AT_ONCE

STEP_NS: Final = 200_000_000
"""Distance of the points of a progress curve; Lambda refills its network every 100 ms."""

_LOOK_NS: Final = 50_000_000
"""Distance of the points of an upload with a polled socket: between them its rate is unknown."""
_FIRST_LOOK_NS: Final = 2_000_000
"""First look after the last byte was sent; each later look is twice as far from the previous."""

Point = tuple[int, int]
"""An instant and the bytes transferred until then."""

_PAUSE_NS: Final = 40_000_000
"""Shortest pause inside a body that is noted if it took half of its time; a paced body comes in
many pieces, which are closer."""
_ARRIVAL_NS: Final = 1000
"""Time that the bytes after a pause are noted to take."""
_WITH_ANSWER_NS: Final = 1_000_000
"""An acknowledgement this close to the response arrived with it, and adds no information."""
_AT_ONCE_NS: Final = 100_000
"""A response this soon after sending a small body had arrived before the send returned, at an
unknown time: no store that keeps an object responds faster."""
_MOST_CHARACTERS: Final = 128
"""Longest identifier kept; those of Amazon S3 have 16 and 76 characters."""
_CONTENT_RANGE: Final = re.compile(r"bytes (?:([0-9]{1,18})-([0-9]{1,18})|\*)/(?:([0-9]{1,18})|\*)")
"""Syntax of ``Content-Range``: RFC 9110, section 14.4."""


def unseen(moved: int, took_ns: int) -> None:
    """Ignore progress: no board is attached."""


class Meter:
    """An attempt of a request.

    Parameters
    ----------
    request, part, number, wait_ns
        As in ``record.Attempt``.
    deadline_ns
        ``moved`` raises ``DeadlineExceeded`` after this instant.
    on_moved
        Live progress of a long attempt: called at points of its curve with the bytes and the time
        since the last call. The record has the rest in the end.
    """

    # Defaults of fields that a request may not set are class attributes: this makes meters cheap to
    # create.
    status: int | None = None
    answered_ns: int | None = None
    date: str | None = None
    request_id: str | None = None
    host_id: str | None = None
    remote: str | None = None
    reused = False
    content_range: tuple[int, int] | None = None
    """First and last byte of the response, from its header; None without the header."""
    total_bytes: int | None = None
    """Size of the full object, from the same header; None if absent."""
    bytes = 0
    """Bytes transferred so far; while the socket is polled, the bytes that the kernel accepted."""
    first_byte_ns: int | None = None
    last_byte_sent_ns: int | None = None
    end_ns = 0
    shown_bytes = 0
    """Bytes already passed to ``on_moved``."""
    shown_ns = 0
    """Time already passed to ``on_moved``; 0 for most attempts."""
    hedge_ns = 0
    """Time without a response after which the second request of a hedged read is due."""
    rival: "Meter | None" = None
    """The second request; None if there was none."""
    outcome: OperationError | None = None
    """Reason why this request of a hedged read did not count; None for the other of the two."""
    _pause = (_PAUSE_NS, 0, 0)
    """Longest pause inside a body that is read: length, end and bytes until then."""
    _look_ns = _LOOK_NS
    _waiting: Callable[[], int] | None = None
    """Returns the unacknowledged bytes of an upload; None if the socket is not polled."""

    def __init__(
        self,
        request: str,
        part: int,
        number: int,
        wait_ns: int,
        deadline_ns: int,
        on_moved: Callable[[int, int], None],
    ) -> None:
        self.request = request
        self.part = part
        self.number = number
        self.wait_ns = wait_ns
        self._deadline_ns = deadline_ns
        self._on_moved = on_moved
        self.start_ns = self._moved_ns = now_ns = monotonic_ns()
        self._next_ns = now_ns + STEP_NS
        self.curve: list[Point] = [(now_ns, 0)]

    def connected(self, remote: str, *, reused: bool) -> None:
        """Note which connection the request uses."""
        self.remote = remote
        self.reused = reused
        if not reused:
            self._point(monotonic_ns())

    def moved(self, count: int) -> None:
        """Count bytes of the body.

        Raises
        ------
        DeadlineExceeded
            If the deadline has passed.
        """
        now_ns = monotonic_ns()
        wanted = now_ns >= self._next_ns
        if wanted:
            self._rested(now_ns)
        if count:
            self._note_pause(now_ns)
            self._moved_ns = now_ns
        self.bytes += count
        if wanted:
            self._point(now_ns)
            self._show(now_ns - self.start_ns)
            if now_ns > self._deadline_ns:
                raise DeadlineExceeded("the function's deadline has passed")

    def sending(self, waiting: Callable[[], int]) -> None:
        """Count bytes of an upload from now on when ``waiting`` reports their arrival."""
        self._waiting = waiting
        # No bytes moved while the library prepared the body.
        self._point(monotonic_ns())

    def sent(self) -> None:
        """Note when the last byte of the request was sent, if the network had it then."""
        now_ns = monotonic_ns()
        if self.bytes <= AT_ONCE:
            self.last_byte_sent_ns = now_ns
        if self.bytes:
            if now_ns - self._moved_ns >= STEP_NS:
                self._rested(now_ns)
            # From here on only the clock triggers looks.
            self._look_ns = _FIRST_LOOK_NS
            self._point(now_ns)

    def acknowledged(self, at_ns: int) -> None:
        """Note when the last byte was acknowledged, unless the response carried that."""
        ago_ns, now_ns = wall_ns() - at_ns, monotonic_ns()
        if ago_ns >= _WITH_ANSWER_NS:
            self.last_byte_sent_ns = instant_ns = now_ns - ago_ns
            if instant_ns > self.curve[-1][0]:
                self.curve.append((instant_ns, self.bytes))

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Note when the head of the response came, and its contents."""
        self.answered_ns = now_ns = monotonic_ns()
        self.status = status
        if self.last_byte_sent_ns is not None and now_ns - self.last_byte_sent_ns < _AT_ONCE_NS:
            self.last_byte_sent_ns = None
        if self._waiting is not None:
            self._end_upload(now_ns, is_whole=status < 300)
        get = headers.get
        self.date = get("date")
        self.request_id = _identifier(get("x-amz-request-id"))
        self.host_id = _identifier(get("x-amz-id-2"))
        if (content_range := get("content-range")) is not None:
            self.content_range, self.total_bytes = _parse_content_range(content_range)

    def first_byte(self) -> None:
        """Note when the first byte of the body came."""
        self.first_byte_ns = monotonic_ns()
        self._point(self.first_byte_ns)

    def wait_s(self) -> float:
        """Return the time until the second request is due."""
        sent_ns = self.last_byte_sent_ns or self.start_ns
        return (sent_ns + self.hedge_ns - monotonic_ns()) / NS_PER_S

    def second(self) -> "Meter":
        """Return the meter of a second request for the same bytes."""
        self.rival = Meter(
            self.request, self.part, self.number, 0, self._deadline_ns, self._on_moved
        )
        return self.rival

    def lost(self, error: OperationError) -> None:
        """Note that this request is over, and why it does not count."""
        self.outcome = error
        self.stop()

    def stop(self) -> None:
        """Note that the call into the client has returned; no byte moves after this."""
        self.end_ns = now_ns = monotonic_ns()
        if self._waiting is not None:
            self._end_upload(now_ns, is_whole=False)
        elif self.bytes != self.curve[-1][1]:
            self._rested(now_ns)
            self._point(now_ns)
        pause_ns, until_ns, before = self._pause
        if until_ns and 2 * pause_ns > now_ns - (self.first_byte_ns or 0):
            # A step with a byte counts as flowing all through.
            begin_ns = until_ns - pause_ns
            at = bisect_right(self.curve, begin_ns, key=itemgetter(0))
            end = bisect_left(self.curve, until_ns, key=itemgetter(0))
            self.curve[at:end] = [(begin_ns, before), (until_ns - _ARRIVAL_NS, before)]

    def _end_upload(self, now_ns: int, *, is_whole: bool) -> None:
        """Note the final count of an upload: all bytes if it succeeded, else those acknowledged."""
        if is_whole:
            self._waiting = None
        self._point(now_ns)
        self.bytes, self._waiting = self.curve[-1][1], None

    def _note_pause(self, now_ns: int) -> None:
        """Note the longest pause before bytes of a body that is read."""
        pause_ns = now_ns - self._moved_ns
        if pause_ns > self._pause[0] and self.bytes and self.first_byte_ns is not None:
            self._pause = (pause_ns, now_ns, self.bytes)

    def _rested(self, now_ns: int) -> None:
        """Note the start of a stall, so that the bytes before it are not spread over it."""
        if (
            self._waiting is None
            and now_ns - self._moved_ns >= STEP_NS
            and self.bytes != self.curve[-1][1]
        ):
            self._point(self._moved_ns)

    def _point(self, now_ns: int) -> None:
        if self._waiting is None:
            self.curve.append((now_ns, self.bytes))
            self._next_ns = now_ns + STEP_NS
        else:
            before = self.curve[-1][1]
            # Without bytes since the last point there is nothing to ask for.
            waiting = self._waiting() if self.bytes > before else 0
            self.curve.append((now_ns, max(before, self.bytes - waiting)))
            self._next_ns = now_ns + self._look_ns
            self._look_ns = min(2 * self._look_ns, _LOOK_NS)

    def _show(self, took_ns: int) -> None:
        moved = self.curve[-1][1]
        before, self.shown_bytes = self.shown_bytes, moved
        before_ns, self.shown_ns = self.shown_ns, took_ns
        self._on_moved(moved - before, took_ns - before_ns)


def _identifier(text: str | None) -> str | None:
    """Return an identifier from the store, shortened and with printable characters only."""
    if text is None or (len(text) <= _MOST_CHARACTERS and text.isprintable()):
        return text
    return "".join(filter(str.isprintable, text))[:_MOST_CHARACTERS]


def _parse_content_range(content_range: str) -> tuple[tuple[int, int] | None, int | None]:
    match = _CONTENT_RANGE.fullmatch(content_range)
    if match is None:
        return None, None
    first, last, total = (None if text is None else int(text) for text in match.groups())
    span = None if first is None or last is None else (first, last)
    return span, total


def join_curves(curves: Sequence[list[Point]], start_ns: int) -> list[tuple[int, int]]:
    """Return the sum of progress curves as consecutive ``(step_ns, step_bytes)``.

    Parameters
    ----------
    curves
        Curves of the successful attempts. A single curve is kept point by point; several, which run
        side by side, are added up on a common grid of ``STEP_NS``.
    start_ns
        Start of the first step.

    Returns
    -------
    list of (int, int)
        The bytes add up to the curves' last values exactly: stretches are split at grid lines by
        differences of a running total.
    """
    if not curves:
        return []
    if len(curves) == 1:
        return _steps(curves[0], start_ns)
    end_ns = max(curve[-1][0] for curve in curves)
    cells = [0] * (-(-(end_ns - start_ns) // STEP_NS) or 1)
    for curve in curves:
        for (t0, b0), (t1, b1) in pairwise(curve):
            _spread(cells, t0 - start_ns, t1 - start_ns, b1 - b0)
    last_ns = end_ns - start_ns - STEP_NS * (len(cells) - 1)
    return [(STEP_NS, moved) for moved in cells[:-1]] + [(last_ns, cells[-1])]


def _steps(curve: Sequence[Point], start_ns: int) -> list[tuple[int, int]]:
    """Return the stretches of a curve, including those in which no byte moved."""
    steps = []
    rest_ns = last_ns = start_ns
    moved = 0
    for now_ns, count in curve:
        if count != moved:
            if last_ns != rest_ns:
                steps.append((last_ns - rest_ns, 0))
            steps.append((now_ns - last_ns, count - moved))
            rest_ns, moved = now_ns, count
        last_ns = now_ns
    if last_ns != rest_ns:
        steps.append((last_ns - rest_ns, 0))
    return steps


def _spread(cells: list[int], begin_ns: int, end_ns: int, moved: int) -> None:
    # An instant at the very end belongs to the last cell.
    last = min(max(begin_ns, end_ns - 1) // STEP_NS, len(cells) - 1)
    first = min(begin_ns // STEP_NS, last)
    assigned = 0
    for cell in range(first, last):
        until = moved * ((cell + 1) * STEP_NS - begin_ns) // (end_ns - begin_ns)
        cells[cell] += until - assigned
        assigned = until
    cells[last] += moved - assigned
