"""The start barrier as a policy of a job: settings, and keys of objects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from serverless_bench.base.units import parse_duration, parse_share
from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.policy import Policy
from serverless_bench.job.types import Limits, check_types, wrong

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.worker.runner import InvocationRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierOptions(Options):
    """The functions that wait for each other.

    Parameters
    ----------
    barrier
        Fraction of the invocations that must have arrived before any starts; None for no barrier.
    barrier_timeout
        Time after which the barrier opens even if functions are missing.
    """

    barrier: Annotated[
        float | None,
        Meaning(
            "Start together once this share of functions is ready.",
            parse=parse_share,
            after="deadline",
        ),
    ] = None
    barrier_timeout: Annotated[
        float,
        Limits(positive=True),
        Meaning(
            "Time after which the barrier opens in any case.", parse=parse_duration, after="barrier"
        ),
    ] = 60.0

    def __post_init__(self) -> None:
        check_types(self)
        if self.barrier is not None and not 0 < self.barrier <= 1:
            raise wrong(
                "barrier",
                f"must be above 0 and at most 1, got {self.barrier:g}",
                hint="it is the fraction of functions to wait for, such as 0.95",
            )


NAME: Final = "barrier"
"""Name of the setting."""
_POLLS_PER_S: Final = 2000
"""Most requests per second at a barrier, from all functions together: well below the 5,500 GET/s of
one partition (Amazon S3 user guide, "Best practices design patterns")."""
_LEAST_POLL_S: Final = 0.05


def folder(prefix: str, run_id: str) -> str:
    """Return the common prefix of the keys of a run's start barrier."""
    return f"{prefix}{run_id}/barrier/"


def start_key(prefix: str, run_id: str, first: int = 0) -> str:
    """Return the key of the object that opens the barrier for the batch starting at ``first``."""
    return folder(prefix, run_id) + (f"start-{first}" if first else "start")


def poll_s(job: "JobSpec") -> float:
    """Return the interval at which a function polls the barrier."""
    return max(_LEAST_POLL_S, job.concurrency / _POLLS_PER_S)


class Barrier(Policy):
    """Functions wait for each other before the measurement."""

    leaves_notes = True

    def in_invocation(self, job: "JobSpec", index: int) -> Mapping[str, float]:
        """Return the first index of the batch, which starts together, and the times of waiting."""
        timeout_s = BarrierOptions.from_work(job).barrier_timeout
        first = index - index % job.concurrency
        return {"first": first, "poll_s": poll_s(job), "timeout_s": timeout_s}

    def note_keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys that the barrier may create for an invocation."""
        prefix, run_id = invocation.target.prefix, invocation.run_id
        first = invocation.options[NAME]["first"]
        if invocation.index == first:
            yield start_key(prefix, run_id, first)
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
