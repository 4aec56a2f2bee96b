"""The driver's side of the start barrier: open it when the functions are ready."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.policy import DriverPolicy
from serverless_bench.features.barrier.policy import BarrierOptions, folder, poll_s, start_key
from serverless_bench.job.keys import NOTE
from serverless_bench.job.spec import JobSpec

if TYPE_CHECKING:
    from serverless_bench.driver.bucket import Bucket
    from serverless_bench.driver.coordinator import Coordinator

_LOOK_EVERY_S: Final = 0.2
_LOOK_LATER_S: Final = 0.5
"""Interval for the first function of a batch while the previous batch runs; each look is a LIST
request.
"""
_LEAD_S: Final = 0.25


class BarrierOpening(DriverPolicy):
    """Opens the barrier of each batch of functions."""

    once = True

    def check(self, job: JobSpec) -> None:
        """Raise an error for a job without a bucket, in which functions could meet."""
        if job.load.folder is not None:
            raise UsageError(
                "a barrier needs a bucket", hint="leave `barrier` or `path` out", field="barrier"
            )

    def coordinate(self, coordinator: "Coordinator", bucket: "Bucket") -> Iterator[None]:
        """Open the barrier of the first batch, and after the pause those of the others."""
        job = coordinator.job
        first, *later = range(0, job.number, job.concurrency)
        _open_barrier(coordinator, bucket, first)
        yield
        for first in later:
            _open_barrier(coordinator, bucket, first)


def _open_barrier(coordinator: "Coordinator", bucket: "Bucket", first: int) -> None:
    """Open the barrier of the batch at index ``first`` when the functions are ready.

    ``barrier`` of the report has ``expected`` and ``announced`` functions of all ``batches`` that
    started, and ``opened_ns`` (driver's clock) and ``waited_s`` of the first batch.
    """
    job, run_id, clock = coordinator.job, coordinator.run_id, coordinator.clock
    options, prefix = BarrierOptions.from_work(job), job.target.prefix
    place = folder(prefix, run_id)
    batch = range(first, min(first + job.concurrency, job.number))
    expected = max(1, -(-round(len(batch) * (options.barrier or 0.0) * 1000) // 1000))
    began_ns = clock.now_ns()
    timeout_ns = round(options.barrier_timeout * NS_PER_S)
    # A later batch starts after the previous batch, without a limit of time.
    deadline_ns = None if first else clock.now_ns() + timeout_ns
    announced = 0
    while announced < expected and (deadline_ns is None or clock.now_ns() < deadline_ns):
        if coordinator.over.wait(_LOOK_LATER_S if deadline_ns is None else _LOOK_EVERY_S):
            return
        names = (key.removeprefix(place) for key in bucket.keys(place))
        announced = sum(name.isdigit() and int(name) in batch for name in names)
        if announced and deadline_ns is None:
            deadline_ns = clock.now_ns() + timeout_ns
    # Every function has seen it by then.
    instant_ns = clock.now_ns() + round((_LEAD_S + 2 * poll_s(job)) * NS_PER_S)
    bucket.put(start_key(prefix, run_id, first), NOTE + str(instant_ns).encode())
    opened_ns = clock.now_ns()
    barrier = coordinator.noted.setdefault(
        "barrier",
        {
            **dict.fromkeys(("expected", "announced", "batches"), 0),
            "opened_ns": opened_ns,
            "waited_s": (opened_ns - began_ns) / NS_PER_S,
        },
    )
    for name, count in {"expected": expected, "announced": announced, "batches": 1}.items():
        barrier[name] += count


OPENING = BarrierOpening()
