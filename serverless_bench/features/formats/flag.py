"""The flag that exports a run as PyWren's list."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from serverless_bench.cli.flags.options import FILE, SettingOption, option

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.metrics.summary import Summary
    from serverless_bench.rundir.run import Run


class PickleFlag:
    """Writes the file after the run."""

    kind = Path
    flag = staticmethod(
        option(
            "--pickle",
            cls=SettingOption,
            section="Output",
            after="run-dir keep",
            type=FILE,
            help="Also write PyWren's list of (start, stop, MB/s).",
        )
    )

    def check(self, value: Path, job: "JobSpec") -> None:
        """Check that the file can be written."""
        from serverless_bench.cli.job import check_writable

        check_writable("--pickle", value)

    def make(
        self, value: Path, run: "Run", keys: Sequence[str], summary: "Summary", *, is_whole: bool
    ) -> str:
        """Write the file."""
        from serverless_bench.features.formats.export import export

        export(run, value, format="pywren")
        return ""


PICKLE = PickleFlag()
