"""``sbench read``."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.flags.options import trust_option
from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.lookup import RunName
from serverless_bench.cli.output.terminal import aside
from serverless_bench.errors import SbenchError
from serverless_bench.job.target import Addressing
from serverless_bench.job.workload import open_workload

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run

_NAME: Final = "read"


@click.command(_NAME)
@click.option(
    "--from",
    type=RunName(),
    metavar="RUN",
    help="Read the objects of this run from its store.  [default: the latest run that wrote]",
)
@trust_option
@report_options
@job_options(_NAME)
def command(*, trust: bool, run_dir: Path, **flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Read objects back, compare every byte and report the throughput.

    If there are more functions than keys, keys are read more than once; with fewer functions,
    the remaining keys are not read.
    """
    source = flags.pop("from")
    if source is not None:
        from serverless_bench.rundir.listing import find_run
        from serverless_bench.rundir.run import load_run

        saved: Run | None = load_run(find_run(source, run_dir), detail=False)
    elif flags["key"] or flags["key_file"]:
        saved = None
    else:
        saved = _latest_source(run_dir)
    if saved is not None:
        flags |= _settings_of(saved, flags, trust=trust)
    return run(prepare(_NAME, {**flags, "run_dir": run_dir}))


def _latest_source(run_dir: Path) -> "Run | None":
    """Return the latest run with objects to read; None if there is no such run."""
    from serverless_bench.rundir.listing import HEADER, entries

    runs = [entry for entry in entries(run_dir) if entry.is_run]
    if not runs:
        return None
    # Import libraries only now, so that the message for an invalid flag does not wait for them.
    from serverless_bench.rundir.lock import refuse_cleaned
    from serverless_bench.rundir.run import load_run, read_header
    from serverless_bench.rundir.schema import check_header

    maker = open_workload(_NAME).source
    for entry in runs:
        # Skip damaged directories and runs with deleted objects.
        with suppress(SbenchError):
            refuse_cleaned(entry.path)
            header = read_header(entry.path)
            # The records of other runs may be large, and there may be many of them.
            if check_header(entry.path / HEADER, header).workload == maker:
                saved = load_run(entry.path, detail=False)
                aside(f"reading the objects of {entry.path}")
                return saved
    return None


def _settings_of(saved: "Run", flags: Mapping[str, Any], *, trust: bool) -> dict[str, Any]:
    """Return the settings for reading the objects of a run, without those that the user gave."""
    from serverless_bench.driver.origin import confirm
    from serverless_bench.rundir.listing import KEYS

    if places := confirm(saved, trust=trust):
        aside(places)
    target = saved.job.target
    settings: dict[str, Any] = {} if flags["key"] else {"key_file": saved.path / KEYS}
    if target.store is None and not flags["bucket"]:
        settings |= {
            "bucket": target.bucket_name,
            "endpoint_url": ",".join((target.endpoint_url, *saved.job.endpoints)),
            "region": target.region,
            "addressing": target.addressing,
        }
    given = {name for name, value in flags.items() if value not in (None, Addressing.AUTO)}
    return {name: value for name, value in settings.items() if name not in given}
