"""What the store gives to all functions together: requests per second, bytes per second."""

from typing import Final

import numpy as np

from serverless_bench.job.operations import OperationKind
from serverless_bench.lab.simulation.model import Store
from serverless_bench.rundir.tables import Floats

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
