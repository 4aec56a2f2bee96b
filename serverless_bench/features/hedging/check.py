"""The check of a job with second requests."""

from serverless_bench.clients import CLIENTS
from serverless_bench.driver.policy import DriverPolicy
from serverless_bench.features.hedging.options import HedgingOptions
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.operations import READING
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import wrong


class HedgingCheck(DriverPolicy):
    """Rejects jobs that read nothing, and clients that send a request once."""

    def check(self, job: JobSpec) -> None:
        """Raise an error for a job that the setting does not suit."""
        hedge, workload, client = (
            HedgingOptions.from_work(job).hedge,
            job.declared,
            job.target.client,
        )
        if not isinstance(hedge, str) and not 0 < (hedge or 0) < job.transfer.timeout:
            raise wrong("hedge", f"must be above 0 s and below the timeout, got {hedge:g} s")
        if not (isinstance(workload, RunsCode) or workload.kinds(job.load).keys() & {*READING}):
            raise wrong(
                "hedge", "needs reads of objects", hint="leave it out: writes are sent once"
            )
        if not CLIENTS.load(client).info.hedges:
            raise wrong("hedge", f"does not work with `client` {client}", hint="wire hedges reads")


CHECK = HedgingCheck()
