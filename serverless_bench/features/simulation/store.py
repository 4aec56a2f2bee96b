"""Capacity of the store for all functions together, and waits of clients after a rejection.

A worker draws its jitter from its seed, so a job that runs twice draws the same waits twice, and
the longest of them determines the end of the run. A simulation with other waits would describe
another job.
"""

import random
from typing import Final

import numpy as np

from serverless_bench.features.cost.model import Store
from serverless_bench.job.invocations import derive_seed
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import Floats, Ints
from serverless_bench.worker.retry import THROTTLED_S, drawn_wait_s, jitter_of

LEAST_S, MOST_S = 0.001, 0.1
_STEPS: Final = 20
"""Steps in the duration of a function."""
_MOST_STEPS: Final = 2000
"""Maximum number of steps in the duration of a function, if that is long."""
_IN_TURN: Final = 8
"""Steps in the duration of a request, if requests compete."""


def usual_step_s(function_s: float) -> float:
    """Return the length of a step during which the store rejects nothing."""
    most_s = max(MOST_S, function_s / _MOST_STEPS)
    return float(np.clip(function_s / _STEPS, LEAST_S, most_s))


def short_step_s(latency_s: float, usual_s: float) -> float:
    """Return the length of a step during which the store rejects requests.

    Requests are in the order of their instants from step to step, but not within a step.
    """
    return float(np.clip(latency_s / _IN_TURN, LEAST_S, usual_s))


_ROUNDS: Final = 30
_CALM_S: Final = 1.0


class SharedStore:
    """The limits of a store, step by step.

    Parameters
    ----------
    model
        Limits of the store.
    kind
        Kind of the job's operations: all its requests count against a single limit.
    """

    def __init__(self, model: Store, kind: OperationKind) -> None:
        self._model = model
        self._per_s = model.put_per_s if kind is OperationKind.PUT else model.get_per_s
        self._partitions = model.partitions
        # As in sbench serve, a burst of one second's requests is allowed.
        self._tokens = self._depth
        self._refusing_s = 0.0
        self._refused = False
        self._calm_s = np.inf

    @property
    def _depth(self) -> float:
        return (self._per_s or 0.0) * self._partitions

    @property
    def is_refusing(self) -> bool:
        """Whether it has recently rejected requests, so that the order decides which are served."""
        return self._refused or self._calm_s < _CALM_S

    def begin_step(self, passed_s: float) -> None:
        """Advance time, which restores tokens and splits partitions."""
        model = self._model
        if self._refused and model.split_s is not None:
            self._refusing_s += passed_s
            splits = int(self._refusing_s // model.split_s)
            self._partitions = min(model.most_partitions, model.partitions + splits)
        self._calm_s = 0.0 if self._refused else self._calm_s + passed_s
        self._refused = False
        self._tokens = min(self._depth, self._tokens + self._depth * passed_s)

    def admit(self, count: int) -> int:
        """Return how many of ``count`` requests are admitted; the rest get 503."""
        if self._per_s is None:
            return count
        admitted = min(count, int(self._tokens))
        self._tokens -= admitted
        self._refused |= admitted < count
        return admitted

    def share(self, most: Floats, claim: Floats, presence: Floats) -> float:
        """Return the rate limit of a function of weight 1 that keeps the total below the ceiling.

        Parameters
        ----------
        most
            Maximum rate of each function by itself, in bytes per second.
        claim
            Weight of each function.
        presence
            Fraction of the step during which each function transfers bytes.
        """
        ceiling = self._model.bytes_per_s
        if ceiling is None or float(most @ presence) <= ceiling:
            return np.inf
        # Max-min fairness: functions that need less than their share leave the rest to the others.
        share = ceiling / float(claim @ presence)
        for _ in range(_ROUNDS):
            below = most < share * claim
            rest = float(claim[~below] @ presence[~below])
            if not rest:
                break
            raised = (ceiling - float(most[below] @ presence[below])) / rest
            if raised <= share * (1 + 1e-9):
                break
            share = raised
        return share


class Retries:
    """Waits of all groups; each has a random source, created on first use.

    Parameters
    ----------
    seed
        Seed of the job.
    threads
        Threads of each function.
    retries
        Number of retries, as in ``Transfer``.
    """

    def __init__(self, seed: int, threads: int, retries: int) -> None:
        self.budget_s = retries * THROTTLED_S
        """Time for retries of a request, starting with the first rejection."""
        self._seed, self._threads = seed, threads
        self._of: dict[int, random.Random] = {}

    def waits_s(self, groups: Ints, failed: Ints) -> Floats:
        """Draw a wait for each request of these groups, given the number of failed attempts."""
        pairs = zip(groups.tolist(), failed.tolist(), strict=True)
        return np.array([drawn_wait_s(self._source(group), number) for group, number in pairs])

    def _source(self, group: int) -> random.Random:
        source = self._of.get(group)
        if source is None:
            function, thread = divmod(group, self._threads)
            source = self._of[group] = jitter_of(derive_seed(self._seed, function), thread)
        return source
