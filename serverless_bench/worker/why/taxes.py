"""Take a share of a function's processor, or of its interpreter's lock, in some of the blocks."""

import threading
from collections import Counter
from collections.abc import Callable
from ctypes import PyDLL
from functools import partial
from hashlib import pbkdf2_hmac
from typing import Final, Self

from serverless_bench.clock import EpochClock, monotonic_ns, sleep, thread_ns
from serverless_bench.job.interventions import Interventions
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.cpu_time import cpu_ns

_STEP_S: Final = 0.004
"""Interval of the taxes: below the interpreter's switch interval of 5 ms."""
_ROUNDS: Final = 500
"""Iterations of a hash, which takes a fraction of a millisecond without the interpreter's lock."""


class Taxes:
    """Threads that tax a function while that is the change.

    Parameters
    ----------
    plan
        The blocks.
    clock
        Clock of the function.
    """

    def __init__(self, plan: Interventions, clock: EpochClock) -> None:
        self._plan = plan
        self._now_ns = clock.now_ns
        self._over = threading.Event()
        self.taken = Counter(tax_ns=0, tax_of_ns=0, hold_ns=0, hold_of_ns=0)
        """The amounts taken, as fields of the record."""
        self._threads = [
            threading.Thread(target=self._take, args=(change, take), daemon=True)
            for change, take in (("processor", self._burn), ("lock", self._hold))
            if change in plan.changes
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _take(self, change: str, take: Callable[[Callable[[], bool]], dict[str, int]]) -> None:
        """Wait for each block with a change, and add the amounts that are taken in it."""
        while not self._over.is_set():
            block = self._now_ns() // self._plan.block_ns
            until_ns = (block + 1) * self._plan.block_ns
            if self._plan.change(block) == change:
                self.taken.update(take(partial(self._goes_on, until_ns)))
            self._over.wait(max(until_ns - self._now_ns(), 0) / NS_PER_S)

    def _goes_on(self, until_ns: int) -> bool:
        return self._now_ns() < until_ns and not self._over.is_set()

    def _burn(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        """Use a share of a processor, without the interpreter's lock."""
        begin_ns, own_ns, used_ns = monotonic_ns(), thread_ns(), cpu_ns()
        while goes_on():
            if thread_ns() - own_ns < self._plan.lever * (monotonic_ns() - begin_ns):
                pbkdf2_hmac("sha256", b"why", b"tax", _ROUNDS)
            else:
                sleep(_STEP_S)
        return {"tax_ns": thread_ns() - own_ns, "tax_of_ns": cpu_ns() - used_ns}

    def _hold(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        """Hold the interpreter's lock for a share of the time, without using a processor."""
        # A function of PyDLL keeps the lock while it runs.
        hold = PyDLL(None).usleep
        lever, begin_ns, held_ns = self._plan.lever, monotonic_ns(), 0
        while goes_on():
            start_ns = monotonic_ns()
            due_ns = lever * (start_ns - begin_ns) - held_ns
            hold(int(min(max(due_ns, 0) / 1000, _STEP_S * 1e6)))
            held_ns += monotonic_ns() - start_ns
            sleep(_STEP_S * (1 - lever))
        return {"hold_ns": held_ns, "hold_of_ns": monotonic_ns() - begin_ns}
