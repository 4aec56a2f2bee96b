"""Start of functions: the driver's pace, the cloud's launch rate, and the start-up time."""

import math
from heapq import heappop, heappush

import numpy as np

from serverless_bench.features.cost.model import Launch
from serverless_bench.rundir.tables import Floats, Ints, Mask


class Launcher:
    """Launches invocations in the order of the index.

    Parameters
    ----------
    model
        Parameters of the start.
    count
        Number of invocations.
    concurrency
        Maximum number of functions alive at the same time.
    names
        Lambda functions that share the invocations; each has a separate launch rate. A forecast of
        a sample of the functions has a fraction of these, and of the driver's rate.
    pace_s
        Time between two invocations of a driver that is slower than the model's.
    rng
        Source of start-up times.
    """

    def __init__(
        self,
        model: Launch,
        count: int,
        *,
        concurrency: int,
        names: float,
        rng: np.random.Generator,
        pace_s: float = 0.0,
    ) -> None:
        self._model = model
        # One number at a time from an array: a call for each is slow.
        self._deviations = rng.standard_normal(count).tolist()
        self._room = concurrency
        self._freed: list[float] = []
        self._idle: list[tuple[float, int]] = []
        self._depth = np.inf if model.burst is None else float(model.burst * names)
        self._per_s = np.inf if model.per_s is None else model.per_s * names
        self._pace_s = max(pace_s, 1 / model.submit_per_s if model.submit_per_s else 0.0)
        self._tokens, self._filled_s = self._depth, 0.0
        self._next_s = 0.0
        self.launched = 0
        self.environments = 0
        self.count = count
        self.submitted_s: Floats = np.full(count, np.nan)
        self.start_s: Floats = np.full(count, np.nan)
        self.is_cold: Mask = np.zeros(count, dtype=np.bool_)
        self.environment: Ints = np.zeros(count, dtype=np.int64)

    def earliest_s(self) -> float:
        """Return the earliest instant of the next launch; infinite if there is none."""
        return self._earliest()[0]

    def _earliest(self) -> tuple[float, bool]:
        """Return the instant of the next launch, and whether it reuses an environment."""
        if self.launched >= self.count or not (self._room or self._freed):
            return np.inf, False
        at_s = self._next_s if self._room else max(self._next_s, self._freed[0])
        missing = 1 - self._tokens
        new_s = max(at_s, self._filled_s + missing / self._per_s) if missing > 1e-9 else at_s
        idle_s = max(at_s, self._idle[0][0]) if self._idle else np.inf
        return (idle_s, True) if idle_s <= new_s else (new_s, False)

    def launch(self) -> int:
        """Launch the next function at its earliest instant, and return its index."""
        (at_s, warm), model, index = self._earliest(), self._model, self.launched
        while self._freed and self._freed[0] <= at_s:
            heappop(self._freed)
            self._room += 1
        if np.isfinite(self._depth):
            earned = max(0.0, at_s - self._filled_s) * self._per_s
            self._tokens = min(self._depth, self._tokens + earned) - (not warm)
            self._filled_s = max(at_s, self._filled_s)
        if warm:
            self.environment[index] = heappop(self._idle)[1]
        else:
            self.environment[index] = self.environments
            self.environments += 1
        self.is_cold[index], self.submitted_s[index] = not warm, at_s
        median, sigma = (
            (model.warm_s, model.warm_sigma) if warm else (model.cold_s, model.cold_sigma)
        )
        self.start_s[index] = at_s + median * math.exp(sigma * self._deviations[index])
        self._next_s = at_s + self._pace_s
        self._room -= 1
        self.launched += 1
        return index

    def ended(self, index: int, end_s: float) -> None:
        """Record the end of a function, which frees the environment at once and the slot later."""
        heappush(self._idle, (end_s, int(self.environment[index])))
        heappush(self._freed, end_s + self._model.collect_s)
