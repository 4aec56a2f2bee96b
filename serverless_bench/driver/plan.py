"""Reject invalid jobs, note what may surprise, and list the keys that a job may create."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

from serverless_bench.base.errors import (
    ArchiveError,
    PluginError,
    SbenchError,
    StoreError,
    UsageError,
)
from serverless_bench.base.units import format_count, format_rate, format_size
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.policy import driver_policies_of
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.abilities import RunsCode, tally_of
from serverless_bench.job.endpoint import parse_endpoint
from serverless_bench.job.keys import MAX_KEY_BYTES, check_key, check_prefix, listed
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.planned_objects import mean_bytes, mean_size
from serverless_bench.job.policy import keys_of, policies_of
from serverless_bench.job.read_assignment import check_groups
from serverless_bench.job.spec import InvocationSpec, JobSpec, batches_words, idle_words
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol, check_bucket
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import WORKLOADS, Trait, Workload, open_workload

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET

    from serverless_bench.rundir.run import Run

_NEEDS_SIZES: Final = (OperationKind.GET_RANGE, OperationKind.SCAN)


def check(job: JobSpec, keys: Sequence[str]) -> None:
    """Raise an error for a job that could not be verified or cleaned.

    This is not a part of the specification, because the jobs of older saved runs have to remain
    readable.

    Parameters
    ----------
    job, keys
        Same as in ``invocation_specs``.

    Raises
    ------
    PluginError
        If no plugin provides the workload, the executor or the client; none is imported for that.
    UsageError
        If a prefix, a key or an endpoint is invalid, the client does not support the store's
        protocol, or a share of an object would have no reader.
    """
    WORKLOADS.checked(job.workload)
    EXECUTORS.checked(job.executor)
    CLIENTS.checked(job.target.client)
    targets = [target for target in (job.target, job.control) if target is not None]
    for target in targets:
        check_bucket(target.bucket)
        check_prefix(target.prefix)
    _check_protocol(job)
    if job.target.store is not None and job.endpoints:
        raise wrong("endpoints", "do not apply to the embedded store, which has one address")
    # A command learns the embedded store's address later and passes an empty one here.
    for url in filter(None, (*(target.endpoint_url for target in targets), *job.endpoints)):
        parse_endpoint(url)
    for key in keys:
        check_key(key)
    if job.load.arrivals != "uniform" and job.load.rate is None:
        raise wrong("arrivals", f"{job.load.arrivals} needs `rate`", hint="as in `rate` 100")
    for policy in driver_policies_of(job):
        policy.check(job)
    split = job.load.split
    check_groups(job.number, split or 1)
    needs_sizes = not {*job.declared.kinds(job.load)}.isdisjoint(_NEEDS_SIZES)
    foreign = next((key for key in keys if needs_sizes and listed(key)[1] is None), None)
    if foreign is not None:
        raise UsageError(
            f"{'ranges need' if split is None else '`split` needs'} sizes, but the key"
            f" {foreign!r} contains none",
            hint="sbench did not write it; read it whole, or in ranges: `stat` and `part_size`",
        )


def _check_protocol(job: JobSpec) -> None:
    """Raise an error if the client does not support the protocol of a store other than S3."""
    protocol, client = job.target.protocol, job.target.client
    if protocol is StoreProtocol.S3 or job.load.folder is not None:
        return
    try:
        protocols = CLIENTS.load(client).info.protocols
    except PluginError as exc:
        # Only this message needs the clouds, which load the thin client.
        from serverless_bench.clients.clouds import CLOUDS

        # That of the client alone is not enough for a cloud.
        exc.hint = f"pip install 'serverless-bench[{CLOUDS.load(protocol).extra}]'"
        raise
    if protocol not in protocols:
        hint = f"`client` {DEFAULT_CLIENTS[protocol]}"
        raise wrong("client", f"{client} does not speak {protocol}://", hint=hint)


def check_saved(run: "Run") -> JobSpec:
    """Return the job of a saved run that is to be resumed, if it is valid.

    Raises
    ------
    ArchiveError
        If the job is invalid; the message names the field.
    PluginError
        If no plugin provides its workload, executor or client.
    """
    try:
        if not isinstance(run.job.declared, RunsCode):
            run.job.validate()
        check(run.job, ())
    except UsageError as exc:
        raise ArchiveError(
            f"{run.path / 'run.json'} describes no job that can be launched: {exc}", hint=exc.hint
        ) from exc
    return run.job


def uses_store(job: JobSpec) -> bool:
    """Return whether a job accesses a store: a noop does not, nor do arrays in files."""
    return any(policy.leaves_notes for policy in policies_of(job)) or (
        Trait.NO_REQUESTS not in job.declared.traits and job.load.folder is None
    )


def ledger(job: JobSpec, invocations: Iterable[InvocationSpec]) -> Iterator[str]:
    """Yield all keys that the run may create, which are the only keys that it may ever delete.

    Raises
    ------
    UsageError
        If a key is longer than the limit of S3.
    """
    workload, policies = open_workload(job.workload), policies_of(job)
    if Trait.CREATES_OBJECTS not in workload.traits and not any(p.leaves_notes for p in policies):
        return
    for invocation in invocations:
        notes = chain.from_iterable(policy.note_keys(invocation) for policy in policies)
        for key in chain(notes, keys_of(workload, invocation)):
            if len(key.encode()) > MAX_KEY_BYTES:
                raise UsageError(
                    f"{key[:80]}... is longer than a key may be ({MAX_KEY_BYTES} bytes)",
                    hint="choose a shorter `prefix`",
                )
            yield key


LOCKED: Final = "has Object Lock, which sbench does not support: S3 keeps deleted objects"
NO_LOCK: Final = "name another `bucket`"


def remarks(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield notes for the user about a job with these keys; its store must be running.

    Raises
    ------
    StoreError
        If the job's bucket has Object Lock.
    """
    yield from beyond_the_network(job, keys)
    if _keeps_versions(job):
        yield (
            f"bucket {job.target.bucket_name!r} keeps versions: objects deleted by sbench clean"
            " still cost money, unless --versions deletes these, too"
        )
    count, size = _first_written(job)
    if size:
        objects = format_count(count, "object")
        yield f"written before the measurement: {objects} ({format_size(size)})"
    if job.idle_threads:
        yield f"idle threads: {idle_words(job.idle_threads, job.load.threads)}"
    if job.batches_s is not None:
        yield f"batches: {batches_words(job.number, job.max_concurrency, job.batches_s)}"


def _first_written(job: JobSpec) -> tuple[int, int]:
    """Return number and bytes of the objects that are created before the measurement."""
    if (tally := tally_of(job.declared, job.load)) is not None:
        return tally.prepared
    sized = Trait.NEEDS_SIZE in job.declared.traits
    prepares = sized and type(job.declared).prepare is not Workload.prepare
    count = job.number * job.objects if prepares else 0
    return count, round(count * (mean_size(job) or 0))


def beyond_the_network(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield a note for a job if its rate exceeds the bandwidth of the network.

    Parameters
    ----------
    job
        Job; without both rates there is no note.
    keys
        Keys of the objects to read.
    """
    rate, capacity = job.load.rate, job.network_rate
    object_bytes = mean_bytes(job, keys)
    if rate is not None and capacity is not None and rate * object_bytes > capacity:
        yield (
            f"{rate:g} operations per second of {format_size(round(object_bytes))} are"
            f" {format_rate(rate * object_bytes)}, and the network carries {format_rate(capacity)}:"
            " some will be dropped"
        )


def _keeps_versions(job: JobSpec) -> bool:
    """Return whether a job's objects will be kept after their deletion.

    A store without a versioning status is assumed to keep none.

    Raises
    ------
    StoreError
        If the bucket has Object Lock.
    """
    target, keeps, lock = job.target, False, None
    is_asked = target.protocol is StoreProtocol.S3 and target.store is None and uses_store(job)
    if not is_asked or Trait.CREATES_OBJECTS not in job.declared.traits:
        return False
    # A refused job waits for no client.
    from serverless_bench.clients.s3_http import texts
    from serverless_bench.driver.bucket import OBJECT_LOCK, VERSIONING, open_bucket

    with suppress(SbenchError), open_bucket(target) as bucket:
        keeps = "Enabled" in texts(bucket.read_setting(VERSIONING), "Status")
        # Object Lock needs versions.
        lock = bucket.read_setting(OBJECT_LOCK) if keeps else None
    if lock is not None and is_locked(lock):
        raise StoreError(f"bucket {target.bucket_name!r} {LOCKED}", hint=NO_LOCK)
    return keeps


def is_locked(answer: "ET.Element") -> bool:
    """Return whether the setting of a bucket turns Object Lock on."""
    from serverless_bench.clients.s3_http import texts

    return "Enabled" in texts(answer, "ObjectLockEnabled")
