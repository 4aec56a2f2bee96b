"""``sbench read``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.flags.options import trust_option
from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.lookup import RunName, latest_where, named_source, settings_of
from serverless_bench.cli.output.terminal import aside
from serverless_bench.job.meaning import declared_options
from serverless_bench.job.workload import open_workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
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
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    trust: bool,
    run_dir: Path,
    **flags: Any,
) -> int:
    """Read objects back, compare every byte and report the throughput.

    The read has the shape of the run that wrote the objects: its number of functions, its objects
    per function, its concurrency and its threads, unless they are given. If there are more
    functions than keys, keys are read more than once; with fewer functions, the remaining keys are
    not read.
    """
    source = flags.pop("from")
    if source is not None:
        flags |= named_source(context, {**flags, "from": source, "trust": trust}, run_dir)
    elif all(flags[name] is None for name in _naming()) and (saved := _latest_source(run_dir)):
        flags |= settings_of(context, saved, flags, trust=trust)
    return run(prepare(_NAME, {**flags, "run_dir": run_dir}))


def _naming() -> Iterator[str]:
    """Yield the flags that name objects to read."""
    yield from ("key", "key_file")
    yield from (name for name, (*_, of) in declared_options().items() if of.names_objects)


def _latest_source(run_dir: Path) -> "Run | None":
    """Return the latest run with objects to read; None if there is no run that wrote.

    Raises
    ------
    ArchiveError
        If the objects of all such runs are deleted.
    """
    maker, writes = open_workload(_NAME).source, list[Path]()

    def has_written(path: Path, job: "JobSpec") -> bool:
        writes.extend([path] if job.workload == maker else [])
        return path in writes

    found = latest_where(run_dir, has_written)
    if found is None:
        from serverless_bench.rundir.files import refuse_cleaned

        for path in writes[:1]:
            refuse_cleaned(path)
        return None
    from serverless_bench.rundir.run import load_run

    saved = load_run(found, detail=False)
    aside(f"reading the objects of {found}")
    return saved
