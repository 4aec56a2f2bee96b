"""Create a job from settings and check it before anything starts."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import format_size
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import ALL_OPERATIONS, needs
from serverless_bench.clients.options import check as check_options
from serverless_bench.driver.location import (
    Place,
    check_meant,
    check_room,
    endpoints_of,
    locate,
)
from serverless_bench.driver.plan import check
from serverless_bench.driver.policy import DRIVER_POLICIES, Listing
from serverless_bench.executors import info_of, open_executor
from serverless_bench.job.abilities import (
    Completing,
    Conditional,
    Endless,
    Phased,
    ThroughLibrary,
    pieces_of,
    tally_of,
)
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.keys import read_key_file, stamped_name
from serverless_bench.job.planned_objects import mean_size
from serverless_bench.job.read_assignment import functions_for
from serverless_bench.job.setting_schema import check_name
from serverless_bench.job.settings import (
    JobSettings,
    load_of,
    make_settings,
    options_of,
    size_of,
    values_of,
)
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import FILES, Stat, StoreProtocol, Target, Transfer
from serverless_bench.job.workload import Load, Trait, open_workload
from serverless_bench.rundir.files import refuse_cleaned
from serverless_bench.rundir.listing import HEADER, KEYS

_USUAL_DURATION_S: Final = 10.0
"""Default duration of a workload without a fixed number of operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJob:
    """A job with checked settings; only the store has not been contacted yet."""

    settings: JobSettings
    job: JobSpec
    """Its target has the endpoint from the settings, which may be empty, and no control target yet.
    """
    keys: Sequence[str]
    """Keys of the objects to read."""
    place: Place

    def at(self, target: Target) -> JobSpec:
        """Return the job for a target."""
        check_meant(target, by_service=info_of(self.job.executor).billed)
        if not self.job.target.endpoint_url:
            self.place.check_region(target)
        return replace(self.job, target=target, control=self.place.control(target))

    @contextmanager
    def open_target(self) -> Iterator[Target]:
        """Yield the target of the objects; an embedded store runs as long as the block.

        Raises
        ------
        UsageError
            If the embedded store or the folder of arrays has too little space for the job, or the
            address is invalid.
        StoreError
            If the store does not respond or start, or access to the bucket is denied.
        """
        count, mean_bytes = self.new_objects()
        what = "objects" if self.job.load.library is None else "arrays"
        planned = count * mean_bytes, f"{count:,} {what} of {format_size(mean_bytes)}"
        if self.job.target.endpoint_url == FILES.endpoint_url:
            if count and not info_of(self.job.executor).remote:
                check_room(*planned, Path(self.job.load.folder or ""))
            yield self.job.target
            return
        # Importing botocore is slow, and checking a job does not need it.
        from serverless_bench.driver.target import ensure, located, resolve

        if self.settings.create_bucket:
            ensure(self.job.target)
        if self.job.target.store is not None and count:
            check_room(*planned)
        with located(self.job) as job:
            yield resolve(job.target) if job.target.store is None else job.target

    @contextmanager
    def placed(self, job: JobSpec) -> Iterator[JobSpec]:
        """Yield a similar job with the target that ``open_target`` yields."""
        checked = replace(self, job=job)
        with checked.open_target() as target:
            yield checked.at(target)

    def new_objects(self) -> tuple[int, int]:
        """Return the largest number of objects, or arrays, to create and their mean size.

        The number is zero if it cannot be predicted.
        """
        job, load = self.job, self.job.load
        count = job.number * job.objects
        if (pieces := pieces_of(job.declared, load)) is not None:
            return (0 if self.keys else count), pieces[1]
        if (tally := tally_of(job.declared, load)) is not None:
            made = [(count, size) for kind, count, size in tally.rows if kind.creates]
            count, size = (sum(column) for column in zip(tally.prepared, *made, strict=True))
            return count, -(-size // max(1, count))
        mean = round(mean_size(job) or 0)
        # A mix may create as many objects again as it has at the start.
        return (count * (2 if load.is_drawn else 1) if mean else 0), mean


def check_job(
    given: JobSettings | Mapping[str, Any], keys: Sequence[str] | None = None
) -> CheckedJob:
    """Return the job for some settings, checked as far as possible without a store.

    Parameters
    ----------
    given
        Settings, or values by name for ``make_settings``.
    keys
        Objects, or arrays, to read instead of those in ``key`` or ``key_file``.

    Raises
    ------
    UsageError
        If a setting is invalid; ``field`` is its name.
    PluginError
        If a client or an executor is unknown or its library is missing.
    ExecutorError
        If the stack cannot be used.
    """
    settings = given if isinstance(given, JobSettings) else make_settings(given)
    size = size_of(settings)
    load = load_of(settings)
    settings = _with_end(settings, load)
    workload = open_workload(settings.workload)
    if isinstance(workload, ThroughLibrary):
        workload.check_library(load)
    target, place = locate(settings)
    listing = listing_policy(settings)
    more: Mapping[str, Any] = {}
    if listing is not None:
        # It creates no objects.
        size = None
        if keys is None:
            # A wrong job is rejected before a request.
            listing.check_settings(settings)
            _specified(settings, size, load, (), target, place)
            keys, more = listing.listing(settings, target)
    keys = _keys(settings, load) if keys is None else keys
    if load.folder is not None and target.store is not None:
        options = target.client_option
        target = replace(FILES, client=target.client, prefix=target.prefix, client_option=options)
    job = _specified(settings, size, load, keys, target, place).with_options(**more)
    check_name(job.name)
    check(job, keys)
    _check_client(job)
    place.check(job)
    if is_directory_bucket(job.target.bucket):
        TOOLS.load("directory-bucket")(job)
    open_executor(job)
    if settings.create_bucket and (
        not target.endpoint_url or target.protocol is not StoreProtocol.S3
    ):
        raise UsageError(
            "`create_bucket` needs the `endpoint_url` of an S3-compatible store",
            hint="on a cloud the bucket has owners and policies: make it there",
            field="create_bucket",
        )
    return CheckedJob(settings=settings, job=job, keys=keys, place=place)


def listing_policy(settings: JobSettings) -> Listing | None:
    """Return the policy that lists the objects of a job; None if the settings name them."""
    given = (DRIVER_POLICIES.load(n) for n in options_of(settings) if n in DRIVER_POLICIES)
    return next((policy for policy in given if isinstance(policy, Listing)), None)


def _specified(
    settings: JobSettings,
    size: int | None,
    load: Load,
    keys: Sequence[str],
    target: Target,
    place: Place,
) -> JobSpec:
    number = _number(settings, load, keys)
    values = values_of(JobSpec, settings) | {
        "name": settings.name or stamped_name(settings.workload),
        "target": target,
        "transfer": Transfer(**values_of(Transfer, settings)),
        "load": load,
        "number": number,
        "concurrency": _concurrency(settings, number),
        "objects": _objects(settings),
        "size": size,
        "options": options_of(settings) | place.options,
        "endpoints": endpoints_of(settings)[1:],
    }
    workload = open_workload(settings.workload)
    return JobSpec(**workload.completed(values) if isinstance(workload, Completing) else values)


def _with_end(settings: JobSettings, load: Load) -> JobSettings:
    """Return settings with a default duration for a mix or increments; reject two limits."""
    workload = open_workload(settings.workload)
    what = workload.without_end(load) if isinstance(workload, Endless) else ""
    if not what or (settings.operations is None) != (settings.duration is None):
        return settings
    if settings.operations is not None:
        raise UsageError(f"`operations` and `duration` both end {what}", hint="give one of them")
    return replace(settings, duration=_USUAL_DURATION_S)


def _objects(settings: JobSettings) -> int:
    usual = open_workload(settings.workload).default_objects
    return usual if settings.objects is None else settings.objects


def _number(settings: JobSettings, load: Load, keys: Sequence[str]) -> int:
    # PyWren's 0 stands for all keys (s3_benchmark.py:122).
    workload = open_workload(settings.workload)
    given = workload.functions(load) if isinstance(workload, Phased) else None
    usual = given or workload.default_number
    if usual is None and not settings.number:
        objects, split = max(1, _objects(settings)), max(1, settings.split or 1)
        return functions_for(len(keys), objects=objects, split=split)
    return (usual or 0) if settings.number is None else settings.number


def _concurrency(settings: JobSettings, number: int) -> int:
    """Return the number of concurrent functions; remote executors run all at once, like PyWren."""
    if settings.concurrency is not None:
        return settings.concurrency
    info = info_of(settings.executor)
    if info.in_process:
        return 1
    most, cpus = info.per_cpu, os.cpu_count() or 1
    return max(1, number if most is None else min(number, most * cpus))


def _keys(settings: JobSettings, load: Load) -> Sequence[str]:
    """Return the keys to read from the settings; empty if the workload creates its objects."""
    workload = open_workload(settings.workload)
    reads = workload.reads(load)
    if reads and (settings.key_file is None) == (settings.key is None):
        names = " or ".join(
            f"`{name}`" for name in ("key_file", "key") if name in workload.settings
        )
        raise UsageError(
            f"give {names} with the objects to read",
            hint=f"sbench {workload.source} --key-file FILE makes one; a run directory has its"
            " keys.txt",
        )
    if settings.key is not None:
        return [settings.key]
    if settings.key_file is None or (workload.source and not reads):
        return ()
    keys = read_keys(Path(settings.key_file))
    if isinstance(workload, ThroughLibrary):
        for key in keys:
            workload.check_key(load, key)
    return keys


def read_keys(path: Path) -> list[str]:
    """Return the keys of a key file, unless it belongs to a run that has been cleaned.

    Raises
    ------
    UsageError
        If the file is missing, empty, or has a line that is not a valid key.
    ArchiveError
        If it is the key file of a run and ``sbench clean`` has started to delete its objects.
    """
    if path.name == KEYS and (path.parent / HEADER).is_file():
        refuse_cleaned(path.parent)
    return read_key_file(path)


def _check_client(job: JobSpec) -> None:
    """Raise an error for operations and options that the client does not support."""
    client = CLIENTS.load(job.target.client).info
    check_options(job.target)
    name, bucket = job.target.client, job.target.bucket
    if not re.fullmatch(client.bucket_names, bucket):
        raise UsageError(
            f"`client` {name} sends no request for a bucket named {bucket!r}",
            hint="`client` wire takes every name",
            field="client",
        )
    workload = job.declared
    if isinstance(workload, Conditional) and not client.conditional:
        raise UsageError(
            f"`client` {job.target.client} makes no conditional writes",
            hint="wire and boto3 make them, of a bucket that speaks S3",
            field="client",
        )
    needed = {needs(kind) for kind in workload.kinds(job.load)} & ALL_OPERATIONS
    if job.transfer.part_size is not None:
        exist = Trait.TAKES_EXISTING in workload.traits and job.reads_given
        creates = Trait.CREATES_OBJECTS in workload.traits and not exist
        needed.add("multipart" if creates else "range")
    lacking = sorted(needed - client.operations)
    if job.transfer.stat is not Stat.KEY and "head" not in client.operations:
        lacking.append("head")
    if lacking:
        is_s3 = job.target.protocol is StoreProtocol.S3
        others = "wire and boto3 offer all" if is_s3 else "no client does"
        raise UsageError(
            f"`client` {job.target.client} does not offer {', '.join(lacking)}",
            hint=f"it offers {', '.join(sorted(client.operations))}; {others}",
        )
