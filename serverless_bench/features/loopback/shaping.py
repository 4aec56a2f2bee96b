"""Delays of a request: latencies, rates of connections and functions, limits.

This module neither sleeps nor reads a clock: each method takes the present instant and
returns a delay. Delays are reservations: the next request is served afterwards.
"""

import heapq
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S, parse_duration, whole_number
from serverless_bench.features.aws.token_bucket import TokenBucket

QUANTUM_NS: Final = NS_PER_S // 10
"""Lambda grants network capacity in quanta of 100 ms (Skyrise, EDBT 2025, section 4.2)."""
MAX_SERVERS: Final = 10_000
_Draw = Callable[..., float]
_SLACK_NS: Final = NS_PER_S // 50
"""A sleep is longer than requested; up to this much of the excess is compensated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Limits that make a store slow; None sets no limit."""

    latency: str | None = None
    """Delay before the first byte of a response, see ``parse_latency``."""
    queue: str | None = None
    """Queue of requests for objects, see ``parse_queue``."""
    connection_bytes_per_s: float | None = None
    function_burst_bytes: float | None = None
    """Burst of a function in each direction before the rate applies."""
    function_bytes_per_s: float | None = None
    put_per_s: float | None = None
    """PUT, POST and DELETE requests per second and prefix."""
    get_per_s: float | None = None
    """GET and HEAD requests per second and prefix."""
    stall: str | None = None
    """Time during which the store sends no response, see ``parse_stall``."""

    def __post_init__(self) -> None:
        parse_latency(self.latency)
        parse_queue(self.queue)
        parse_stall(self.stall)
        if self.function_burst_bytes is not None and self.function_bytes_per_s is None:
            raise UsageError("--function-burst needs --function-rate")

    @property
    def slows_bytes(self) -> bool:
        """Whether bodies are transferred at a limited rate."""
        return bool(self.connection_bytes_per_s or self.function_bytes_per_s)


_DISTRIBUTIONS: Final[dict[str, tuple[tuple[Callable[[str], float], ...], _Draw]]] = {
    "fixed": ((parse_duration,), lambda _, value: value),
    "exponential": (
        (parse_duration,),
        lambda rng, mean: rng.expovariate(1 / mean) if mean else 0.0,
    ),
    "uniform": ((parse_duration, parse_duration), lambda rng, low, high: rng.uniform(low, high)),
    # The median of a log-normal distribution is exp(mu).
    "lognormal": (
        (parse_duration, float),
        lambda rng, median, sigma: median * rng.lognormvariate(0, sigma),
    ),
}
"""How the parameters of each distribution are read, and how a time is drawn."""


def parse_latency(text: str | None) -> Callable[[random.Random], float]:
    """Return a function that draws a latency in seconds.

    Parameters
    ----------
    text
        ``fixed:TIME``, ``exponential:MEAN``, ``uniform:LOW,HIGH`` or ``lognormal:MEDIAN,SIGMA``,
        with durations like ``30ms``, where sigma is that of the natural logarithm; None for
        no latency.

    Raises
    ------
    UsageError
        If the text has a different form.
    """
    return (lambda _: 0.0) if text is None else _distribution("--latency", text)


def parse_queue(text: str | None) -> tuple[int, Callable[[random.Random], float]] | None:
    """Return how many requests are served at once, and a function that draws the seconds of each.

    Parameters
    ----------
    text
        ``N:DIST``, with a distribution as for ``parse_latency``; None for no queue.

    Raises
    ------
    UsageError
        If the text has a different form.
    """
    if text is None:
        return None
    servers, _, distribution = text.partition(":")
    if not distribution or not 1 <= (whole_number(servers) or 0) <= MAX_SERVERS:
        raise UsageError(
            f"--queue: {text!r} is not of the form N:DIST",
            hint=f"4:exponential:20ms serves 4 requests concurrently; N is at most {MAX_SERVERS}",
        )
    return int(servers), _distribution("--queue", distribution)


def _distribution(flag: str, text: str) -> Callable[[random.Random], float]:
    name, _, values = text.partition(":")
    readers, sample = _DISTRIBUTIONS.get(name, ((), max))
    try:
        pairs = zip(readers, values.split(","), strict=True)
        numbers = [read(value) for read, value in pairs]
    except (UsageError, ValueError):
        numbers = []
    if not numbers or min(numbers) < 0:
        raise UsageError(
            f"{flag}: {text!r} is not a distribution",
            hint="write fixed:30ms, exponential:30ms, uniform:10ms,50ms or lognormal:30ms,0.5",
        )
    return lambda rng: sample(rng, *numbers)


class Pace:
    """A constant rate, for example of a connection.

    Parameters
    ----------
    bytes_per_s
        The rate.
    """

    def __init__(self, bytes_per_s: float) -> None:
        self._ns_per_byte = NS_PER_S / bytes_per_s
        self._free_ns = 0

    def wait_ns(self, count: int, now_ns: int) -> int:
        """Return the time that ``count`` bytes take, starting now."""
        begin_ns = max(self._free_ns, now_ns - _SLACK_NS)
        self._free_ns = begin_ns + round(count * self._ns_per_byte)
        return max(0, self._free_ns - now_ns)


class NetworkBucket:
    """The network of a function in one direction, as Lambda grants it.

    The bucket is full at first. Later, capacity is restored in quanta of 100 ms up to half of the
    bucket: the other half is granted only once (Skyrise, EDBT 2025, section 4.2: 300 MiB at
    first, 150 MiB after a pause, 75 to 78 MiB/s).

    Parameters
    ----------
    burst_bytes
        Initial content of the bucket.
    bytes_per_s
        Refill rate.
    now_ns
        Start of the first quantum.
    """

    def __init__(self, burst_bytes: float, bytes_per_s: float, now_ns: int) -> None:
        self._tokens = burst_bytes
        self._quantum = bytes_per_s * QUANTUM_NS / NS_PER_S
        # A bucket smaller than a quantum would never reach the rate.
        self._room = max(burst_bytes / 2, self._quantum)
        self._start_ns = now_ns
        self._given = 0
        self._lock = threading.Lock()

    def wait_ns(self, count: int, now_ns: int) -> int:
        """Take ``count`` bytes and return the time until the transfer may be complete."""
        with self._lock:
            quanta = (now_ns - self._start_ns) // QUANTUM_NS
            if quanta > self._given:
                refilled = self._tokens + (quanta - self._given) * self._quantum
                self._tokens = max(self._tokens, min(refilled, self._room))
                self._given = quanta
            self._tokens -= count
            if self._tokens >= 0:
                return 0
            missing = -int(self._tokens // self._quantum)
            return max(0, self._start_ns + (self._given + missing) * QUANTUM_NS - now_ns)


def parse_stall(text: str | None) -> tuple[float, float] | None:
    """Return the start and the duration of a stall, both in seconds.

    Parameters
    ----------
    text
        ``AT:FOR``, counted from the first response about an object; None for no stall.

    Raises
    ------
    UsageError
        If the text has a different form.
    """
    if text is None:
        return None
    try:
        at_s, for_s = map(parse_duration, text.split(":"))
    except (UsageError, ValueError):
        for_s = 0.0
    if not for_s:
        raise UsageError(
            f"--stall: {text!r} is not of the form AT:FOR", hint="write durations, as in 2s:1500ms"
        )
    return at_s, for_s


@dataclass
class Shaper:
    """All delays of a server, safe to share between threads.

    Parameters
    ----------
    shape
        Limits that make the store slow.
    """

    shape: Shape
    _functions: dict[tuple[str, bool], NetworkBucket] = field(default_factory=dict)
    _prefixes: dict[tuple[str, bool], TokenBucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.latency_s = parse_latency(self.shape.latency)
        """Draws the delay of a response before the first byte."""
        self._stall = parse_stall(self.shape.stall)
        self._first_ns: int | None = None
        self._queue = parse_queue(self.shape.queue)
        self._free_ns = [0] * (self._queue[0] if self._queue else 0)

    def stall_ns(self, now_ns: int) -> int:
        """Return how long the store will send nothing, for a response that is due now."""
        if self._stall is None:
            return 0
        with self._lock:
            if self._first_ns is None:
                self._first_ns = now_ns
        at_s, for_s = self._stall
        begin_ns = self._first_ns + round(at_s * NS_PER_S)
        end_ns = begin_ns + round(for_s * NS_PER_S)
        return end_ns - now_ns if begin_ns <= now_ns < end_ns else 0

    def queue_ns(self, rng: random.Random, received_ns: int, now_ns: int) -> int:
        """Return the time from now until a request received at ``received_ns`` has been served."""
        if self._queue is None:
            return 0
        service_ns = round(self._queue[1](rng) * NS_PER_S)
        with self._lock:
            # First come, first served, by the server that is free first.
            end_ns = max(self._free_ns[0], received_ns) + service_ns
            heapq.heapreplace(self._free_ns, end_ns)
        return max(0, end_ns - now_ns)

    def function(self, name: str, *, upload: bool, now_ns: int) -> NetworkBucket | None:
        """Return the network of the function called ``name`` in one direction."""
        rate = self.shape.function_bytes_per_s
        if rate is None:
            return None
        with self._lock:
            if (name, upload) not in self._functions:
                burst = self.shape.function_burst_bytes or 0.0
                self._functions[name, upload] = NetworkBucket(burst, rate, now_ns)
            return self._functions[name, upload]

    def admits(self, prefix: str, *, write: bool, now_ns: int) -> bool:
        """Return whether another request on ``prefix`` is within the store's limits."""
        limit = self.shape.put_per_s if write else self.shape.get_per_s
        if limit is None:
            return True
        with self._lock:
            if (prefix, write) not in self._prefixes:
                self._prefixes[prefix, write] = TokenBucket(limit, max(1.0, limit), now_ns)
            bucket = self._prefixes[prefix, write]
        return bucket.take(now_ns)
