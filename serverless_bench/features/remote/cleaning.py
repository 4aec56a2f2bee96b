"""What remote functions leave beside the objects of a run: claims, records, events and probes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from serverless_bench.driver.policy import DriverPolicy, Folder
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.remote.options import RemoteOptions
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run


class Cleaning(DriverPolicy):
    """Names what can be deleted after a run."""

    def delay_s(self, job: JobSpec) -> float:
        """Return the time after which a function that has not started is launched again."""
        return RemoteOptions.from_work(job).start_timeout

    def left_keys(self, run: "Run") -> Iterator[str]:
        """Yield the keys that a probe of the functions may have left in the ledger."""
        from serverless_bench.features.remote.probe import ProbeSpec

        spec = ProbeSpec(run_id=run.run_id, target=run.job.target)
        yield from (
            replace(spec, number=number).mark
            for number in range(len(FunctionOptions.from_work(run.job).function))
        )

    def control_folders(self, control: Target, run_id: str) -> Iterator[Folder]:
        """Yield the folders of the claims, records and events of a run."""
        from serverless_bench.features.remote.claims import (
            for_events,
            for_run,
            is_of_probe,
            parse_claim,
            parse_record,
        )
        from serverless_bench.features.remote.looks import PROGRESS_FOLDER, STOP

        own, events = for_run(control, run_id), for_events(control)
        yield (
            own,
            "records/",
            lambda name: bool(parse_record(name)) or is_of_probe("records/" + name),
        )
        yield (
            own,
            "claims/",
            lambda name: (
                bool(parse_claim(name))
                or is_of_probe("claims/" + name)
                or "claims/" + name == STOP
                or ("claims/" + name).startswith(PROGRESS_FOLDER)
            ),
        )
        yield events, f"{run_id}/", lambda name: bool(parse_claim(name))


CLEANING = Cleaning()
