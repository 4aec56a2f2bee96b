"""The start barrier as a policy of a job, and the keys of its objects."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from serverless_bench.job.policy import Policy

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec
    from serverless_bench.worker.runner import InvocationRunner


def folder(prefix: str, run_id: str) -> str:
    """Return the common prefix of the keys of a run's start barrier."""
    return f"{prefix}{run_id}/gate/"


def start_key(prefix: str, run_id: str, first: int = 0) -> str:
    """Return the key of the object that opens the barrier for the batch starting at ``first``."""
    return folder(prefix, run_id) + (f"start-{first}" if first else "start")


class Barrier(Policy):
    """Functions wait for each other before the measurement."""

    def note_keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys that the barrier may create for an invocation."""
        prefix, run_id = invocation.target.prefix, invocation.run_id
        if invocation.index == invocation.gate_from:
            yield start_key(prefix, run_id, invocation.gate_from)
        yield folder(prefix, run_id) + str(invocation.index)

    def begin(self, runner: "InvocationRunner") -> tuple[Mapping[str, int], int | None]:
        """Wait at the barrier."""
        # Only functions need what this loads.
        from serverless_bench.features.barrier.barrier import pass_barrier
        from serverless_bench.worker.retry import jitter_of

        invocation = runner.invocation
        rng = jitter_of(invocation.seed, 0)
        return pass_barrier(invocation, runner.client(), rng, runner.is_run_over)


BARRIER = Barrier()
