"""Second requests as a policy of a job."""

from typing import TYPE_CHECKING

from serverless_bench.features.hedging.options import HedgingOptions
from serverless_bench.job.operations import READING, OperationKind
from serverless_bench.job.policy import Policy

if TYPE_CHECKING:
    from serverless_bench.features.hedging.patience import Hedging
    from serverless_bench.job.spec import InvocationSpec, JobSpec


class HedgedReads(Policy):
    """A request without a response is made again."""

    def in_invocation(self, job: "JobSpec", index: int) -> float | str | None:
        """Return the setting."""
        return HedgingOptions.from_work(job).hedge

    def second_requests(self, invocation: "InvocationSpec") -> "dict[OperationKind, Hedging]":
        """Return the times after which reads are requested again, by kind of operation."""
        # Only functions need what this loads.
        from serverless_bench.features.hedging.patience import Hedging

        hedge = HedgingOptions.from_work(invocation).hedge
        return {} if hedge is None else {kind: Hedging(hedge) for kind in READING}


HEDGED_READS = HedgedReads()
