"""The policies of retries and second requests, and the record of each attempt of an operation.

Retries are explicit. They are limited by number, or by time while the store throttles. Before each
one is a pause: full jitter between 0 and ``min(20 s, 0.1 s * 2**n)``, or the store's
``Retry-After`` (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
Clients never retry by themselves, so each HTTP request is one row.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, cast

from serverless_bench.base import clock
from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import (
    DeadlineExceeded,
    OperationError,
    Throttled,
    WrongRegion,
)
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Client, HedgingClient, Sink
from serverless_bench.job.price_classes import FREE_STATUS
from serverless_bench.worker.meter import Meter, unseen

THROTTLED_S: Final = 15.0
"""Time per permitted retry during which a throttled request is repeated: an overloaded store keeps
rejecting requests, whichever client sends them."""
_BASE_S: Final = 0.1
_CAP_S: Final = 20.0
_DOUBLINGS: Final = 8
"""Number of doublings that reach the cap."""
LOOK_NS: Final = NS_PER_S // 4
"""Interval at which a longer wait checks whether the driver has ended the run."""
_MAX_MOVES: Final = 2
"""Most redirects that one request follows."""
T = TypeVar("T")


def longest_wait_s(number: int) -> float:
    """Return the longest wait before the next attempt after ``number`` failures."""
    # A throttling store may cause thousands of failures, and 2**1100 overflows a float.
    return min(_CAP_S, _BASE_S * 2.0 ** min(number, _DOUBLINGS))


def jitter_of(seed: int, thread: int) -> random.Random:
    """Return the source of jitter for one thread of the invocation with this seed."""
    return random.Random(seed if not thread else f"{seed}/{thread}")


def drawn_wait_s(rng: random.Random, number: int) -> float:
    """Draw the wait before the next attempt after ``number`` failures."""
    return rng.uniform(0, longest_wait_s(number))


def forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of an exception and of all causes.

    Their frames hold buffers and connections, and refer to the exception: only the garbage
    collector would free them, which runs rarely while operations are measured.
    """
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


class Patience(Protocol):
    """The time after which a kind of read is requested again; threads may share it."""

    after_ns: int | None
    """Time without a response, None as long as it is unknown."""

    def learn(self, meter: Meter) -> None:
        """Take a first request into account."""


@dataclass(slots=True)
class Retrier:
    """Makes the attempts of an operation's requests, and keeps them all.

    Parameters
    ----------
    client
        Moved to the bucket's region when the store redirects requests.
    retries
        Further attempts of a request after a transient failure; a throttled request gets as many as
        fit into ``THROTTLED_S`` each.
    deadline_ns
        Monotonic instant after which no attempt is started.
    rng
        Source of the jitter.
    on_moved
        Live progress, as in ``Meter``.
    hedging
        Decides when to request a slow read again; None to request it once.
    """

    client: Client
    retries: int
    deadline_ns: int
    rng: random.Random
    on_moved: Callable[[int, int], None] = unseen
    hedging: Patience | None = None
    done: list[tuple[Meter, OperationError | None]] = field(default_factory=list)
    """Finished attempts, in the order in which they finished. Appending is atomic, so the threads
    of a parallel transfer share it without a lock."""

    def run(
        self,
        request: str,
        call: Callable[[Meter], T],
        *,
        part: int = 0,
        wait_ns: int = 0,
        once: bool = False,
    ) -> T:
        """Return the result of the first ``call`` that does not raise.

        Parameters
        ----------
        request, part
            As in ``record.Attempt``.
        call
            Makes an HTTP request through the client and reports it to the meter.
        wait_ns
            Pause that the caller made before it.
        once
            Whether a failure is final, because a repeated request would have a different effect.

        Raises
        ------
        OperationError
            From the last attempt, when no retry is left or would help.
        """
        number = moves = failures = 0
        throttled_until_ns: int | None = None
        while True:
            meter = Meter(request, part, number, wait_ns, self.deadline_ns, self.on_moved)
            try:
                result = call(meter)
            except OperationError as exc:
                failure = exc
            except BaseException:
                # A bug in a client, or Ctrl-C: record a failure, even if bytes were transferred.
                self._note(meter, OperationError("ended by an exception"))
                raise
            else:
                if meter.rival is not None:
                    self._note(meter, None)
                    return result
                # Not in a method: this is the path of nearly all requests.
                meter.stop()
                self.done.append((meter, None))
                return result
            self._note(meter, failure)
            number += 1
            if isinstance(failure, WrongRegion) and moves < _MAX_MOVES:
                moves, wait_ns = moves + 1, 0
                self.client.move(region=failure.region, endpoint_url=failure.endpoint)
                continue
            if isinstance(failure, Throttled):
                now_ns = monotonic_ns()
                budget_ns = round(self.retries * THROTTLED_S * NS_PER_S)
                throttled_until_ns = throttled_until_ns or now_ns + budget_ns
                is_over = now_ns >= throttled_until_ns
            else:
                failures += 1
                is_over = failures > self.retries
            if once or not failure.retryable or is_over:
                raise failure
            wait_ns = self.wait_before(number - moves, failure)

    def get(
        self, key: str, sink: Sink, meter: Meter, *, offset: int = 0, length: int | None = None
    ) -> Meter:
        """Read an object or a range of it, in a ``call`` of ``run``.

        Returns
        -------
        Meter
            That of the request whose response the sink received.
        """
        hedging = self.hedging
        if hedging is None or (after_ns := hedging.after_ns) is None:
            self.client.get(key, sink, meter, offset=offset, length=length)
        else:
            meter.hedge_ns = after_ns
            client = cast("HedgingClient", self.client)
            client.get_hedged(key, sink, meter, offset=offset, length=length)
        if hedging is not None:
            hedging.learn(meter)
        return meter if meter.outcome is None or meter.rival is None else meter.rival

    def _note(self, meter: Meter, failure: OperationError | None) -> None:
        for attempt in filter(None, (meter, meter.rival)):
            if not attempt.end_ns:
                attempt.stop()
            error = attempt.outcome or failure
            forget_frames(error)
            self.done.append((attempt, error))

    def wait_before(self, number: int, failure: OperationError) -> int:
        """Wait before the next attempt, and return the length of the wait.

        Parameters
        ----------
        number
            Number of failed attempts so far.
        failure
            Error of the last attempt.

        Raises
        ------
        DeadlineExceeded
            If the wait would end after the deadline.
        """
        wait_s = drawn_wait_s(self.rng, number)
        # A store that sends "after 0 s" would otherwise get requests without pause.
        if isinstance(failure, Throttled) and failure.retry_after_s:
            wait_s = min(_CAP_S, failure.retry_after_s)
        wait_ns = round(wait_s * NS_PER_S)
        if monotonic_ns() + wait_ns > self.deadline_ns:
            raise DeadlineExceeded(f"no time left for another attempt: {failure}") from failure
        self.pause(wait_s)
        return wait_ns

    def pause(self, seconds: float) -> None:
        """Sleep, unless the function has to stop before.

        Raises
        ------
        DeadlineExceeded
            If it has to stop.
        """
        # Nobody can end a run that shows no progress.
        longest_s = seconds if self.on_moved is unseen else LOOK_NS / NS_PER_S
        self.look()
        while seconds > 0:
            clock.sleep(min(seconds, longest_s))
            seconds -= longest_s
            self.look()

    def look(self) -> None:
        """Raise ``DeadlineExceeded`` if the function has to stop."""
        self.on_moved(0, 0)
        if monotonic_ns() > self.deadline_ns:
            raise DeadlineExceeded("the function's deadline has passed")

    def billed(self) -> Counter[str]:
        """Return the number of billed attempts so far, by request, as Amazon S3 bills them.

        Attempts with a 5xx response are free; those without a response may have arrived.
        """
        statuses = ((m, m.status or (failure and failure.status) or 0) for m, failure in self.done)
        return Counter(meter.request for meter, status in statuses if status < FREE_STATUS)


MOVING: Final = frozenset(
    {"put", "upload_part", "get", "write_array", "append_array", "read_array", "call"}
)
"""Requests that transfer the bytes of objects."""
