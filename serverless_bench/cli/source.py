"""The run that wrote the objects of a read, and the shape of the read: that of the write."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from serverless_bench.base.errors import SbenchError
from serverless_bench.cli.output.terminal import aside

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.rundir.run import Run


def latest_where(run_dir: Path, accepts: "Callable[[Path, JobSpec], bool]") -> Path | None:
    """Return the latest run that a condition accepts and ``sbench clean`` has not begun to clean.

    Damaged runs are skipped.
    """
    from serverless_bench.rundir.listing import HEADER, entries

    runs = [entry.path for entry in entries(run_dir) if entry.is_run]
    if not runs:
        return None
    # Import libraries only now, so that the message for an invalid flag does not wait for them.
    from serverless_bench.rundir.files import refuse_cleaned
    from serverless_bench.rundir.run import read_header
    from serverless_bench.rundir.schema import check_header

    for path in runs:
        with suppress(SbenchError):
            # The records of other runs may be large, and there may be many of them.
            if accepts(path, check_header(path / HEADER, read_header(path))):
                refuse_cleaned(path)
                return path
    return None


def named_source(context: click.Context, flags: Mapping[str, Any], run_dir: Path) -> dict[str, Any]:
    """Return the settings for reading the objects of the run that ``--from`` names, if it does."""
    if not flags.get("from"):
        return {}
    from serverless_bench.rundir.listing import find_run
    from serverless_bench.rundir.run import load_run

    saved = load_run(find_run(flags["from"], run_dir), detail=False)
    return settings_of(context, saved, flags, trust=flags.get("trust", False))


def settings_of(
    context: click.Context, saved: "Run", flags: Mapping[str, Any], *, trust: bool
) -> dict[str, Any]:
    """Return the settings for reading the objects of a run, without those that the user gave."""
    from serverless_bench.driver.origin import confirm

    if places := confirm(saved, trust=trust):
        aside(places)
    target = saved.job.target
    settings: dict[str, Any] = {}
    if target.store is None and not flags["bucket"]:
        settings = {
            "bucket": target.bucket_name,
            "endpoint_url": ",".join((target.endpoint_url, *saved.job.endpoints)),
            "region": target.region,
            "addressing": target.addressing,
        }
    settings = {name: value for name, value in settings.items() if not _given(context, name)}
    return settings | shape_of(context, saved.job, saved.path, flags)


def shape_of(
    context: click.Context, job: "JobSpec", path: Path, flags: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keys of a run and the number, objects, concurrency and threads of its job.

    Values that the user gave are missing. A run that wrote fewer objects than planned is read by
    as many functions as they need. All functions at once stay so with another ``--number``, and
    with another executor, which has other limits.
    """
    from serverless_bench.driver.checked_job import read_keys
    from serverless_bench.job.read_assignment import functions_for
    from serverless_bench.rundir.listing import KEYS

    shape: dict[str, Any] = {"threads": job.load.threads}
    has_number = _given(context, "number")
    if job.executor == flags["executor"] and not (has_number and job.concurrency >= job.number):
        shape["concurrency"] = job.concurrency
    if not (flags["key"] or flags["key_file"]):
        shape |= {"key_file": path / KEYS, "objects": job.objects}
        if not _given(context, "split"):
            objects = flags["objects"] if _given(context, "objects") else job.objects
            count = len(read_keys(path / KEYS))
            needed = functions_for(count, objects=max(1, objects), split=1)
            shape["number"] = min(job.number, needed)
    return {name: value for name, value in shape.items() if not _given(context, name)}


def _given(context: click.Context, name: str) -> bool:
    """Return whether the user gave a flag: in the command line, the environment or a file."""
    return context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
