"""The flag that measures the harness after a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from serverless_bench.cli.flags.options import SettingOption, option

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.metrics.summary import Summary
    from serverless_bench.rundir.run import Run


class CeilingFlag:
    """Runs a job against a store that discards all objects."""

    kind = bool
    flag = staticmethod(
        option(
            "--ceiling",
            cls=SettingOption,
            section="Output",
            after="run-dir keep",
            is_flag=True,
            help="Also measure the harness: run a few GB against a store that discards them.",
        )
    )

    def check(self, value: object, job: "JobSpec") -> None:
        """Check that functions run here, and write or read."""
        from serverless_bench.features.loopback.ceiling import check_ceiling

        check_ceiling(job)

    def make(
        self,
        value: object,
        run: "Run",
        keys: Sequence[str],
        summary: "Summary",
        *,
        is_whole: bool,
    ) -> str:
        """Measure, and return a line with the rate."""
        if not is_whole:
            return ""
        from serverless_bench.features.loopback.ceiling import measure_ceiling

        return measure_ceiling(run.job, keys).sentence(summary.throughput_bytes_per_s)


CEILING = CeilingFlag()
