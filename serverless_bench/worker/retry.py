"""The retry policy, and the record of every attempt of one operation.

Retries are explicit, by number, or where the store throttles by time: after full jitter
between 0 and ``min(20 s, 0.1 s * 2**n)``, or the store's ``Retry-After`` (AWS Architecture
Blog, "Exponential Backoff And Jitter", 2015).
Clients never retry by themselves, so every HTTP request is one row.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from serverless_bench import clock
from serverless_bench.clients.base import Client
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import DeadlineExceeded, OperationError, Throttled, WrongRegion
from serverless_bench.job.price_classes import FREE_STATUS
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.meter import Meter, unseen

THROTTLED_S: Final = 15.0
"""For this long a request is tried again that the store throttles, for each retry: a store that
is asked for more than it gives says so to everybody, again and again, and means no one."""
_BASE_S: Final = 0.1
_CAP_S: Final = 20.0
_DOUBLINGS: Final = 8
"""After which the cap is reached."""
_MAX_MOVES: Final = 2
"""Redirects that one request follows."""

T = TypeVar("T")


def longest_wait_s(number: int) -> float:
    """Return the longest wait before another attempt when ``number`` have failed."""
    # Of a store that throttles there may be thousands, and 2**1100 is no float.
    return min(_CAP_S, _BASE_S * 2.0 ** min(number, _DOUBLINGS))


def jitter_of(seed: int, thread: int) -> random.Random:
    """Return the source of the jitter of one thread of an invocation that has this seed."""
    return random.Random(seed if not thread else f"{seed}/{thread}")  # noqa: S311 - jitter


def drawn_wait_s(rng: random.Random, number: int) -> float:
    """Draw the wait before another attempt when ``number`` have failed."""
    return rng.uniform(0, longest_wait_s(number))


@dataclass(slots=True)
class Retrier:
    """Every attempt of one operation's requests.

    Parameters
    ----------
    client
        Moved when the store redirects its requests to where the bucket is.
    retries
        Further attempts of one request after an attempt that failed for a passing reason; of one
        that is throttled, as many as fit into ``THROTTLED_S`` each.
    deadline_ns
        Monotonic instant after which no attempt begins.
    rng
        Source of the jitter.
    on_moved
        Live progress, as in ``Meter``.
    """

    client: Client
    retries: int
    deadline_ns: int
    rng: random.Random
    on_moved: Callable[[int, int], None] = unseen
    done: list[tuple[Meter, OperationError | None]] = field(default_factory=list)
    """Finished attempts in the order in which they ended. Appending is atomic, so the
    threads of a parallel transfer share it without a lock."""

    def run(
        self,
        request: str,
        call: Callable[[Meter], T],
        *,
        part: int = 0,
        wait_ns: int = 0,
        once: bool = False,
    ) -> T:
        """Return what ``call`` returns, once it does not raise.

        Parameters
        ----------
        request, part
            As in ``record.Attempt``.
        call
            Makes one HTTP request through the client and reports it to the meter.
        wait_ns
            Pause that the caller made before it.
        once
            Whether a failure is final: the request would mean something else a second time.

        Raises
        ------
        OperationError
            Of the last attempt, when no further one is left or would help.
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
                # A bug in a client, or Ctrl-C: no success, whatever moved.
                self._note(meter, OperationError("ended by an exception"))
                raise
            else:
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

    def _note(self, meter: Meter, failure: OperationError | None) -> None:
        meter.stop()
        self.done.append((meter, failure))

    def wait_before(self, number: int, failure: OperationError) -> int:
        """Wait before another attempt, and return for how long.

        Parameters
        ----------
        number
            Attempts that failed so far.
        failure
            Of the last one.

        Raises
        ------
        DeadlineExceeded
            If no time is left for it.
        """
        wait_s = drawn_wait_s(self.rng, number)
        # Who says "after 0 s" would be asked without a pause until the time is over.
        if isinstance(failure, Throttled) and failure.retry_after_s:
            wait_s = min(_CAP_S, failure.retry_after_s)
        wait_ns = round(wait_s * NS_PER_S)
        if monotonic_ns() + wait_ns > self.deadline_ns:
            raise DeadlineExceeded(f"no time left for another attempt: {failure}") from failure
        clock.sleep(wait_s)
        return wait_ns

    def billed(self) -> Counter[str]:
        """Return by request how many of the attempts so far a store like Amazon S3 charges for.

        All but those with a 5xx response; what had no response may have arrived.
        """
        statuses = ((m, m.status or (failure and failure.status) or 0) for m, failure in self.done)
        return Counter(meter.request for meter, status in statuses if status < FREE_STATUS)


MOVING: Final = frozenset(
    {"put", "upload_part", "get", "write_array", "append_array", "read_array", "call"}
)
"""Requests that move the object's own bytes."""
