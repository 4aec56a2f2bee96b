"""Start of functions: the driver's pace, the cloud's launch rate, and the start-up time."""

from heapq import heappop, heappush

import numpy as np

from serverless_bench.features.simulation.model import Launch
from serverless_bench.rundir.tables import Floats, Ints, Mask


class SimulatedLauncher:
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
        Lambda functions that share the invocations; each has a separate launch rate.
    rng
        Source of start-up times.
    """

    def __init__(
        self, model: Launch, count: int, *, concurrency: int, names: int, rng: np.random.Generator
    ) -> None:
        self._model = model
        self._rng = rng
        self._room = concurrency
        self._freed: list[float] = []
        self._idle: list[tuple[float, int]] = []
        self._ready: list[int] = []
        self._depth = np.inf if model.burst is None else float(model.burst * names)
        self._per_s = np.inf if model.per_s is None else model.per_s * names
        self._tokens, self._filled_s = self._depth, 0.0
        self._next_s = 0.0
        self.launched = 0
        self.environments = 0
        self.count = count
        self.submitted_s: Floats = np.full(count, np.nan)
        self.start_s: Floats = np.full(count, np.nan)
        self.is_cold: Mask = np.zeros(count, dtype=np.bool_)
        self.environment: Ints = np.zeros(count, dtype=np.int64)

    @property
    def is_done(self) -> bool:
        """Whether all invocations have been launched."""
        return self.launched >= self.count

    def earliest_s(self) -> float:
        """Return the earliest instant of the next launch."""
        if self.is_done or not (self._room or self._freed):
            return np.inf
        room = 0.0 if self._room else self._freed[0]
        missing = max(0.0, 1 - self._tokens)
        token_s = self._filled_s + missing / self._per_s if missing else 0.0
        if self._ready:
            token_s = 0.0
        elif self._idle:
            token_s = min(token_s, self._idle[0][0])
        return max(room, token_s, self._next_s)

    def launch(self, begin_s: float, end_s: float) -> Ints:
        """Launch as many functions as possible before ``end_s``, and return the indices."""
        while self._freed and self._freed[0] <= begin_s:
            heappop(self._freed)
            self._room += 1
        while self._idle and self._idle[0][0] <= begin_s:
            self._ready.append(heappop(self._idle)[1])
        if np.isfinite(self._depth):
            earned = max(0.0, begin_s - self._filled_s) * self._per_s
            self._tokens = min(self._depth, self._tokens + earned)
            self._filled_s = max(begin_s, self._filled_s)
        most = min(self._room, self.count - self.launched)
        warm = min(most, len(self._ready))
        at_s = self._times(most, warm, begin_s)
        at_s = at_s[at_s < end_s]
        if not len(at_s):
            return np.zeros(0, dtype=np.int64)
        indices = np.arange(self.launched, self.launched + len(at_s))
        self._begin(indices, at_s, min(warm, len(at_s)))
        return indices

    def _times(self, most: int, warm: int, begin_s: float) -> Floats:
        """Return when the next ``most`` are accepted; the first ``warm`` reuse an environment."""
        pace = self._model.submit_per_s
        number = np.arange(most)
        sent = np.full(most, begin_s)
        if pace is not None:
            sent = np.maximum(begin_s, self._next_s) + number / pace
        if np.isfinite(self._depth):
            missing = np.maximum(0.0, number - warm + 1 - self._tokens)
            sent = np.maximum(sent, begin_s + missing / self._per_s)
        return sent

    def _begin(self, indices: Ints, at: Floats, warm: int) -> None:
        model, cold = self._model, len(indices) - warm
        self.is_cold[indices[warm:]] = True
        reused = [self._ready.pop() for _ in range(warm)]
        new_environments = range(self.environments, self.environments + cold)
        self.environment[indices] = [*reused, *new_environments]
        self.environments += cold
        median = np.where(self.is_cold[indices], model.cold_s, model.warm_s)
        sigma = np.where(self.is_cold[indices], model.cold_sigma, model.warm_sigma)
        self.submitted_s[indices] = at
        deviations = self._rng.standard_normal(len(indices))
        self.start_s[indices] = at + median * np.exp(sigma * deviations)
        if np.isfinite(self._depth):
            # Launches within the step have used tokens that were added within it.
            self._tokens += (float(at[-1]) - self._filled_s) * self._per_s - cold
            self._filled_s = float(at[-1])
        if model.submit_per_s is not None:
            self._next_s = float(at[-1]) + 1 / model.submit_per_s
        self._room -= len(indices)
        self.launched += len(indices)

    def ended(self, index: int, end_s: float) -> None:
        """Record the end of a function, which frees the environment at once and the slot later."""
        heappush(self._idle, (end_s, int(self.environment[index])))
        heappush(self._freed, end_s + self._model.collect_s)
