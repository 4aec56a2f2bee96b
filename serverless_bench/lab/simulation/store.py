"""What the store gives to all functions together, and how long clients wait that it refuses.

A worker draws its jitter from its seed, so a job that runs twice draws the same waits twice, and
the longest of them ends the run. A simulation that drew others would be of another job.
"""

import random
from typing import Final

import numpy as np

from serverless_bench.job.invocations import derive_seed
from serverless_bench.job.operations import OperationKind
from serverless_bench.lab.simulation.model import Store
from serverless_bench.rundir.tables import Floats, Ints
from serverless_bench.worker.retry import THROTTLED_S, drawn_wait_s, jitter_of

LEAST_S, MOST_S = 0.001, 0.1
_STEPS: Final = 20
"""In the time that a function takes."""
_MOST_STEPS: Final = 2000
"""The same where it takes long."""
_IN_TURN: Final = 8
"""In the time of a request, where requests compete."""


def usual_step_s(function_s: float) -> float:
    """Return how long a step is as long as the store refuses nothing."""
    most_s = max(MOST_S, function_s / _MOST_STEPS)
    return float(np.clip(function_s / _STEPS, LEAST_S, most_s))


def short_step_s(latency_s: float, usual_s: float) -> float:
    """Return how long a step is while it does.

    Requests come in the order of their instants from step to step, and not within one.
    """
    return float(np.clip(latency_s / _IN_TURN, LEAST_S, usual_s))


_ROUNDS: Final = 30
_CALM_S: Final = 1.0


class SharedStore:
    """The limits of a store, step by step.

    Parameters
    ----------
    model
        Its limits.
    kind
        What the job does: all its requests count against one limit.
    """

    def __init__(self, model: Store, kind: OperationKind) -> None:
        self._model = model
        self._per_s = model.put_per_s if kind is OperationKind.PUT else model.get_per_s
        self._partitions = model.partitions
        # As with sbench serve, what a second allows may come at once.
        self._tokens = self._depth
        self._refusing_s = 0.0
        self._refused = False
        self._calm_s = np.inf

    @property
    def _depth(self) -> float:
        return (self._per_s or 0.0) * self._partitions

    @property
    def is_refusing(self) -> bool:
        """Whether it lately refused requests: whose turn it is depends on their order then."""
        return self._refused or self._calm_s < _CALM_S

    def begin_step(self, passed_s: float) -> None:
        """Let time pass: tokens come back, and partitions split."""
        model = self._model
        if self._refused and model.split_s is not None:
            self._refusing_s += passed_s
            splits = int(self._refusing_s // model.split_s)
            self._partitions = min(model.most_partitions, model.partitions + splits)
        self._calm_s = 0.0 if self._refused else self._calm_s + passed_s
        self._refused = False
        self._tokens = min(self._depth, self._tokens + self._depth * passed_s)

    def admit(self, count: int) -> int:
        """Return how many of so many requests are admitted; the others get 503."""
        if self._per_s is None:
            return count
        admitted = min(count, int(self._tokens))
        self._tokens -= admitted
        self._refused |= admitted < count
        return admitted

    def share(self, most: Floats, claim: Floats, there: Floats) -> float:
        """Return what a request of weight 1 gets at most, so that all keep below the ceiling.

        Parameters
        ----------
        most
            What each could move by itself, in bytes per second.
        claim
            The weight of each among the others.
        there
            For which share of the step each is moving.
        """
        ceiling = self._model.bytes_per_s
        if ceiling is None or float(most @ there) <= ceiling:
            return np.inf
        # Max-min fairness: who wants less than its share leaves the rest to the others.
        share = ceiling / float(claim @ there)
        for _ in range(_ROUNDS):
            below = most < share * claim
            rest = float(claim[~below] @ there[~below])
            if not rest:
                break
            raised = (ceiling - float(most[below] @ there[below])) / rest
            if raised <= share * (1 + 1e-9):
                break
            share = raised
        return share


class Retries:
    """The waits of all groups; each has a source of its own, once it needs one.

    Parameters
    ----------
    seed
        Of the job.
    threads
        Of each function.
    retries
        As in ``Transfer``.
    """

    def __init__(self, seed: int, threads: int, retries: int) -> None:
        self.budget_s = retries * THROTTLED_S
        """For how long a request is tried again, from its first refusal on."""
        self._seed, self._threads = seed, threads
        self._of: dict[int, random.Random] = {}

    def waits_s(self, groups: Ints, failed: Ints) -> Floats:
        """Draw a wait for each request of these groups, of which so many attempts failed."""
        pairs = zip(groups.tolist(), failed.tolist(), strict=True)
        return np.array([drawn_wait_s(self._source(group), number) for group, number in pairs])

    def _source(self, group: int) -> random.Random:
        found = self._of.get(group)
        if found is None:
            function, thread = divmod(group, self._threads)
            found = self._of[group] = jitter_of(derive_seed(self._seed, function), thread)
        return found
