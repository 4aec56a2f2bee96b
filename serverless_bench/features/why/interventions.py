"""Changes of a job in short blocks of time, for ``sbench why``. Reads no clock.

Blocks are numbered from the epoch, so that each function knows the present block by its clock,
whenever it started. A base block, in which nothing is changed, precedes every two changed blocks.
Changes come in cycles of random order.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.keys import parse_layout
from serverless_bench.job.policy import Policy
from serverless_bench.job.types import Limits, check_types
from serverless_bench.job.workload import Trait

if TYPE_CHECKING:
    from serverless_bench.features.why.changes import Changes
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.worker.runner import InvocationRunner

CHANGES: Final = {
    "thread": "a quarter more threads",
    "pause": "a pause after each request",
    "cpu": "CPU taxed",
    "lock": "GIL held",
    "others": "other half of functions idle",
    "bytes": "half the bytes per request",
    "prefixes": "other half of prefixes idle",
    "endpoints": "other endpoints idle",
    "nothing": "nothing",
}
"""All changes by name; ``nothing`` shows the effect of chance."""
BASE: Final = ""
"""Name of the change in a base block."""
LEVER: Final = 0.25
"""Size of a gradual change: share of CPU time, of the interpreter lock, or of the time of a
request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interventions(Policy):
    """The blocks of a run, and the changes in them.

    Parameters
    ----------
    changes
        Changes to make, from ``CHANGES``.
    block_s
        Length of a block.
    endpoints
        Number of endpoints at which the functions take turns.
    seed
        Seed of the order.
    """

    changes: tuple[str, ...]
    block_s: Annotated[float, Limits(positive=True)]
    endpoints: Annotated[int, Limits(1, 1 << 20)] = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        if not self.changes or not {*self.changes} <= {*CHANGES}:
            raise UsageError(f"`changes` must be some of {', '.join(CHANGES)}", field="changes")

    @property
    def block_ns(self) -> int:
        """Length of a block."""
        return round(self.block_s * NS_PER_S)

    def change(self, block: int) -> str:
        """Return the change in a block; ``BASE`` for none."""
        if not block % 3:
            return BASE
        cycle, turn = self._turn(block)
        return _shuffled(self.changes, self.seed, cycle)[turn]

    def extra_threads(self, threads: int) -> int:
        """Return the number of additional threads in a block with ``thread``."""
        return max(1, round(LEVER * threads)) if "thread" in self.changes else 0

    def variants(self, invocation: "InvocationSpec") -> Iterator["InvocationSpec"]:
        """Yield variants of an invocation for the operations of changed blocks."""
        if "thread" in self.changes:
            yield with_extra_threads(invocation, self)[0]
        if "bytes" in self.changes:
            yield with_half_bytes(invocation)

    def in_function(self, runner: "InvocationRunner") -> "Changes":
        """Return what carries the changes out."""
        from serverless_bench.features.why.changes import Changes

        return Changes(runner, self)

    def side(self, block: int) -> int:
        """Return the changed half of functions or prefixes, which alternates between cycles."""
        return self._turn(block)[0] % 2

    def _turn(self, block: int) -> tuple[int, int]:
        """Return the cycle of a changed block, and its place there."""
        return divmod(2 * (block // 3) + block % 3 - 1, len(self.changes))

    def is_idle(self, block: int, index: int, folder: int | None = None) -> bool:
        """Return whether a function does nothing in a block, or nothing in a folder of keys."""
        place = {
            "others": index // self.endpoints,
            "endpoints": index % self.endpoints,
            "prefixes": folder,
        }.get(self.change(block))
        return place is not None and place % 2 == self.side(block)


@lru_cache(maxsize=8)
def _shuffled(changes: tuple[str, ...], seed: int, cycle: int) -> Sequence[str]:
    return random.Random(f"{seed}/{cycle}").sample(changes, len(changes))


def changes_for(job: "JobSpec") -> tuple[str, ...]:
    """Return the changes that a job allows."""
    workload, load = job.declared, job.load
    # A workload with prepared objects has none of half the size.
    is_even = (job.size or 0) > 1 if _writes(job) else Trait.CREATES_OBJECTS not in workload.traits
    allowed = {
        "thread": Trait.DEALS_OBJECTS in workload.traits,
        "pause": load.threads == 1 or Trait.DEALS_OBJECTS not in workload.traits,
        "bytes": Trait.DEALS_OBJECTS in workload.traits and is_even,
        "prefixes": Trait.DEALS_OBJECTS in workload.traits and (parse_layout(load.layout) or 0) > 1,
        "endpoints": len(job.endpoints) > 0,
    }
    return tuple(name for name in CHANGES if allowed.get(name, True))


def _writes(work: "Work") -> bool:
    """Return whether the operations to measure create objects."""
    return any(kind.creates for kind in work.declared.kinds(work.load))


def with_extra_threads(
    invocation: "InvocationSpec", plan: Interventions
) -> tuple["InvocationSpec", range]:
    """Return the invocation and the threads that additional threads take their operations from.

    A thread that writes has an object that no other thread writes.
    """
    more = plan.extra_threads(invocation.load.threads)
    first = invocation.objects if _writes(invocation) else 0
    load = replace(invocation.load, threads=first + more)
    objects = invocation.objects + more
    if Trait.CREATES_OBJECTS in invocation.declared.traits and not first:
        objects = invocation.objects
    extended = replace(invocation, objects=objects, load=load)
    return extended, range(first, first + more)


def with_half_bytes(invocation: "InvocationSpec") -> "InvocationSpec":
    """Return an invocation that transfers half as many bytes per request."""
    if _writes(invocation):
        return replace(invocation, size=(invocation.size or 0) // 2)
    load = invocation.load
    return replace(invocation, load=replace(load, split=2 * (load.split or 1)))


def plan_of(work: "Work") -> Interventions | None:
    """Return the blocks of a job; None without any."""
    plan = work.options.get("interventions")
    return plan if isinstance(plan, Interventions) else None
