"""Calculated stores: the exact time in a queue."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from serverless_bench.features.limit.block import LASTS_S, Block, growth_of
from serverless_bench.rundir.tables import Floats

SETTLING = 0.2
"""Share of a block that does not count, as in ``sbench limit``."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Requests wait for one of several servers, first come, first served.

    Service times are equal, and requests come at even distances: a store with a fixed number of
    operations per second. Or both are random, with one server (M/M/1): its latency grows with
    the load.
    """

    per_s: float
    """Capacity of the store."""
    servers: int
    p99_s: float
    """The objective."""
    random: bool = False
    block_s: float = 5.0
    noise_s: float = 0.0
    """Additional time of machine and network for each operation, on average (exponential)."""

    @property
    def limit_per_s(self) -> float:
        """The rate at which exactly one in a hundred operations of a lasting run is slow."""
        if self.random:
            # A sojourn is above t with probability exp(-(mu - lambda) t).
            return self.per_s - log(100) / self.p99_s
        # Above its capacity the wait grows evenly, and the last hundredth is slow.
        slack_s = self.p99_s - self.servers / self.per_s
        return self.per_s * (1 + slack_s / (LASTS_S * (1 - 0.01 * (1 - SETTLING))))

    def block(self, rate: float, rng: np.random.Generator) -> Block:
        """Return a block at this rate."""
        if self.random:
            count = rng.poisson(rate * self.block_s)
            due = np.asarray(np.sort(rng.random(count)) * self.block_s, dtype=np.float64)
            service = rng.exponential(1 / self.per_s, count)
        else:
            instants = (np.arange(round(rate * self.block_s)) + rng.random()) / rate
            due = np.asarray(instants, dtype=np.float64)
            service = np.full(len(due), self.servers / self.per_s)
        ends = np.empty_like(due)
        for server in range(self.servers):
            # Dealt in turn: with equal service whoever is next is free first.
            own = slice(server, None, self.servers)
            done = np.cumsum(service[own])
            ends[own] = done + np.maximum.accumulate(due[own] - (done - service[own]))
        counted = due >= SETTLING * self.block_s
        took_s = (ends - due)[counted]
        if self.noise_s:
            took_s = took_s + rng.exponential(self.noise_s, len(took_s))
        return Block(
            level=round(rate),
            path=None,
            took_s=np.sort(took_s),
            own_s=np.sort(took_s),
            failed=0,
            dropped=0,
            achieved_per_s=0.0,
            growth=growth_of(due[counted], took_s),
        )


@dataclass(frozen=True, kw_only=True)
class Shares:
    """A store with a share of slow operations that depends on the rate; above its capacity, all.

    Its limit is the rate at which that share exceeds 1 %.
    """

    share: Callable[[float], float]
    limit_per_s: float | None
    """None if no level holds."""
    per_s: float = 1000.0
    p99_s: float = 0.05
    block_s: float = 5.0

    def block(self, rate: float, rng: np.random.Generator) -> Block:
        """Return a block at this rate."""
        due = max(1, round(rate * self.block_s * (1 - SETTLING)))
        slow = due if rate > self.per_s else rng.binomial(due, self.share(rate))
        took_s = np.repeat([0.01, 1.0], [due - slow, slow])
        return Block(
            level=round(rate),
            path=None,
            took_s=took_s,
            own_s=took_s,
            failed=0,
            dropped=0,
            achieved_per_s=min(rate, self.per_s),
        )


@dataclass(kw_only=True)
class Stalls:
    """A store of a fixed capacity that stands still for a while, again and again, at any rate.

    The stalls break the objective at every rate, and fall into few blocks.
    """

    each_s: float
    """Mean distance of the stalls; distances are 0.7 to 1.3 times that."""
    stall_s: float
    seed: int
    per_s: float = 1000.0
    servers: int = 10
    p99_s: float = 0.1
    block_s: float = 5.0
    gap_s: float = 0.6
    """Time between two blocks."""
    limit_per_s: None = None
    now_s: float = 0.0
    """Start of the next block."""

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 7])
        begins = np.cumsum(rng.uniform(0.7, 1.3, 2000)) * self.each_s
        begins -= self.each_s * (2 + rng.random())
        self._at = np.repeat(begins, 2)
        self._at[1::2] += self.stall_s
        # Time without the stalls, in which the store is an ordinary queue.
        self._worked = self._at - np.repeat(np.arange(len(begins)), 2) * self.stall_s
        self._worked[1::2] -= self.stall_s

    def took_s(self, rate: float, lasts_s: float) -> tuple[Floats, Floats]:
        """Return when operations are due from now on, at even distances, and their durations."""
        due = (self.now_s + (np.arange(round(rate * lasts_s)) + 0.5) / rate).astype(float)
        begin = np.interp(due, self._at, self._worked).astype(float)
        ends = np.empty_like(begin)
        service = self.servers / self.per_s
        for server in range(self.servers):
            own = slice(server, None, self.servers)
            done = service * np.arange(1, len(due[own]) + 1)
            ends[own] = done + np.maximum.accumulate(begin[own] - (done - service))
        return due, np.interp(ends, self._worked, self._at) - due

    def block(self, rate: float, _: np.random.Generator) -> Block:
        """Return the next block."""
        due, took_s = self.took_s(rate, self.block_s)
        counted = due >= self.now_s + SETTLING * self.block_s
        self.now_s += self.block_s + self.gap_s
        return Block(
            level=round(rate),
            path=None,
            took_s=np.sort(took_s[counted]),
            own_s=np.sort(took_s[counted]),
            failed=0,
            dropped=0,
            achieved_per_s=min(rate, self.per_s),
            growth=growth_of(due[counted] - due[0], took_s[counted]),
        )
