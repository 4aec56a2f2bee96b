"""Reject invalid jobs, and list the keys that a job may create."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from serverless_bench.base.errors import ArchiveError, PluginError, UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.policy import driver_policies_of
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.endpoint import parse_endpoint
from serverless_bench.job.keys import MAX_KEY_BYTES, check_key, check_prefix, declared_size
from serverless_bench.job.policy import keys_of, policies_of
from serverless_bench.job.read_assignment import check_groups
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol, check_bucket
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import WORKLOADS, open_workload

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run


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
    if split is None:
        return
    check_groups(job.number, split)
    foreign = next((key for key in keys if declared_size(key) is None), None)
    if foreign is not None:
        raise UsageError(
            f"`split` needs sizes, but the key {foreign!r} contains none",
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
        if not run.job.declared.runs_code:
            run.job.check_asked()
        check(run.job, ())
    except UsageError as exc:
        raise ArchiveError(
            f"{run.path / 'run.json'} describes no job that can be launched: {exc}", hint=exc.hint
        ) from exc
    return run.job


def uses_store(job: JobSpec) -> bool:
    """Return whether a job accesses a store: a noop does not, nor do arrays in files."""
    return job.gate is not None or (job.declared.uses_store and job.load.folder is None)


def ledger(job: JobSpec, invocations: Iterable[InvocationSpec]) -> Iterator[str]:
    """Yield all keys that the run may create, which are the only keys that it may ever delete.

    Raises
    ------
    UsageError
        If a key is longer than the limit of S3.
    """
    workload = open_workload(job.workload)
    if not workload.creates_objects and job.gate is None:
        return
    policies = policies_of(job)
    for invocation in invocations:
        notes = chain.from_iterable(policy.note_keys(invocation) for policy in policies)
        for key in chain(notes, keys_of(workload, invocation)):
            if len(key.encode()) > MAX_KEY_BYTES:
                raise UsageError(
                    f"{key[:80]}... is longer than a key may be ({MAX_KEY_BYTES} bytes)",
                    hint="choose a shorter `prefix`",
                )
            yield key
