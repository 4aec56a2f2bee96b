"""How long clients wait before they try again: drawn by the workers' law, from the workers' seeds.

A worker draws its jitter from its seed, so a job that runs twice draws the same waits twice, and
the longest of them ends the run. A simulation that drew others would be of another job.
"""

import random

import numpy as np

from serverless_bench.job.invocations import derive_seed
from serverless_bench.rundir.tables import Floats, Ints
from serverless_bench.worker.retry import THROTTLED_S, drawn_wait_s, jitter_of


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
