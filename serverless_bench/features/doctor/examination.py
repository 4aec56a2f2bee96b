"""Checks of ``sbench doctor``: this machine, and the account with its functions and buckets."""

import secrets
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, Final

from serverless_bench.base.errors import (
    AccessDenied,
    OperationError,
    SbenchError,
    StoreError,
    UsageError,
)
from serverless_bench.cli.flags.options import with_flags
from serverless_bench.cli.output.terminal import say
from serverless_bench.clients.clouds import Cloud, cloud_of
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import ENCRYPTION, OBJECT_LOCK, VERSIONING, Bucket, Setting
from serverless_bench.driver.plan import LOCKED, NO_LOCK, is_locked
from serverless_bench.driver.store_errors import explained
from serverless_bench.driver.target import resolve, uses_kms
from serverless_bench.executors import EXECUTORS, executors_where, info_of
from serverless_bench.features.doctor.base import (
    Patient,
    credentials,
    function,
    identity,
    machine,
    network_quota,
    proxies,
    quota,
    stack,
    unless_it_fails,
    versions,
)
from serverless_bench.features.doctor.findings import Finding, Level, fail, ok, warn
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.endpoint import is_billed_by_aws, is_directory_bucket
from serverless_bench.job.target import StoreProtocol, Target, parse_bucket

_GIVE_UP_S: Final = 12.0
"""Time limit of each request to a bucket that exists."""
_NOTHING: Final = frozenset(
    {
        "NoSuchLifecycleConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        "ObjectLockConfigurationNotFoundError",
        "ReplicationConfigurationNotFoundError",
        "ServerSideEncryptionConfigurationNotFoundError",
    }
)
"""Error codes of AWS for a setting that has never been configured."""
_BLOCKS: Final = (
    *("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls"),
    "RestrictPublicBuckets",
)
_IS_THERE: Final = 412
_REFUSED: Final = (*range(400, 500), 501)
"""Statuses of a request that a store does not know or permit."""


def look_at(bucket: Target, patient: Patient, *, write_test: bool) -> Iterator[Finding]:
    """Yield the findings about a bucket.

    Parameters
    ----------
    bucket
        Location of the bucket from the user's flags, with the prefix for the test object.
    patient
        Account and functions for the checks.
    write_test
        Whether to write and delete a small object.
    """
    what = f"bucket {bucket.bucket_name}"
    try:
        target = resolve(bucket)
        with closing(Bucket(target, give_up_s=_GIVE_UP_S)) as store:
            with explained(target):
                region = store.region(patient.account or "")
            yield from _region(what, patient, region)
            if bucket.protocol is StoreProtocol.S3:
                yield from _settings(what, store, by_aws=is_billed_by_aws(target.endpoint_url))
            if write_test:
                claims = bucket.prefix == CONTROL_PREFIX or bool(patient.setups)
                yield from _conditional(what, bucket.prefix, store, claims=claims)
    except (StoreError, UsageError) as exc:
        yield _refused(bucket, exc, owned=patient.account is not None)


def _refused(bucket: Target, exc: SbenchError, *, owned: bool) -> Finding:
    what = f"bucket {bucket.bucket_name}"
    if owned and isinstance(exc.__cause__, AccessDenied) and exc.__cause__.status is not None:
        hint = "check its owner, and the permissions of these credentials"
        return fail(what, "belongs to another account, or denies access", hint)
    # The finding already has the name of the bucket.
    text = str(exc).removeprefix(f"bucket {bucket.bucket_name!r}").removeprefix(":").lstrip()
    return fail(what, text, exc.hint)


def _region(what: str, patient: Patient, bucket_region: str) -> Iterator[Finding]:
    account = f", owned by {patient.account}" if patient.account else ""
    kind = "S3 Express One Zone" if is_directory_bucket(what.removeprefix("bucket ")) else "there"
    yield ok(what, f"{kind}{account}" + (f", in {bucket_region}" if bucket_region else ""))
    for setup in patient.setups:
        # arn:aws:lambda:REGION:ACCOUNT:function:NAME
        region = setup.arn.split(":")[3]
        if bucket_region and region != bucket_region:
            text = f"in {bucket_region}, function {setup.name} in {region}: every byte is billed"
            yield warn(what, text, "keep functions and buckets in one region")


def _settings(what: str, store: Bucket, *, by_aws: bool) -> Iterator[Finding]:
    unanswered: list[str] = []
    for title, setting, judge in _QUESTIONS:
        try:
            answer = _ask(store, setting)
        except OperationError as exc:
            if exc.status in _REFUSED and not by_aws:
                # Other stores have few of the settings.
                unanswered.append(title)
                continue
            yield warn(what, f"{title}: unknown ({exc})", "allow the request, or check it by hand")
            if exc.status is None:
                # The store did not respond. More requests would only wait for the time limit.
                return
        else:
            yield judge(what, answer)
    if unanswered:
        yield ok(what, f"answers no requests about {', '.join(unanswered)}")


def _ask(store: Bucket, setting: Setting) -> ET.Element:
    """Return a setting of the bucket; an empty element if it is not configured."""
    try:
        return store.read_setting(setting)
    except OperationError as exc:
        if str(exc).partition(":")[0] not in _NOTHING:
            raise
        return ET.Element(setting.root)


def _public(what: str, answer: ET.Element) -> Finding:
    if all("true" in texts(answer, name) for name in _BLOCKS):
        return ok(what, "public access is blocked")
    return warn(what, "public access is not blocked", "turn on all four blocks")


def _versioning(what: str, answer: ET.Element) -> Finding:
    if "Enabled" in texts(answer, "Status"):
        text = "keeps versions: deleted objects are still billed"
        return warn(what, text, "suspend versioning, or use another bucket")
    return ok(what, "keeps no versions")


def _encryption(what: str, answer: ET.Element) -> Finding:
    if uses_kms(answer):
        text = "encrypted with KMS: each request of an object also asks KMS, and is billed for it"
        return warn(what, text, "turn on its bucket key")
    kms = texts(answer, "KMSMasterKeyID")
    return ok(what, f"encrypted with {kms[0]} and a bucket key" if kms else "encrypted by S3")


def _lock(what: str, answer: ET.Element) -> Finding:
    return fail(what, LOCKED, NO_LOCK) if is_locked(answer) else ok(what, "has no Object Lock")


def _lifecycle(what: str, answer: ET.Element) -> Finding:
    rules = [rule for rule in answer if "Enabled" in texts(rule, "Status")]
    needed = {"objects": "Expiration", "open uploads": "AbortIncompleteMultipartUpload"}
    kept = [word for word, name in needed.items() if not any(texts(rule, name) for rule in rules)]
    if not kept:
        return ok(what, "abandoned objects and uploads expire")
    text = f"abandoned {' and '.join(kept)} do not expire and are billed"
    return warn(what, text, "add a lifecycle rule, as in the stack of `sbench aws stack`")


def _replication(what: str, answer: ET.Element) -> Finding:
    if "Enabled" in texts(answer, "Status"):
        text = "replicates its objects: replicas are billed, and `sbench clean` leaves them"
        return warn(what, text, "leave the prefix out of the replication, or use another bucket")
    return ok(what, "replicates no objects")


_QUESTIONS: Final[Sequence[tuple[str, Setting, Callable[[str, ET.Element], Finding]]]] = (
    (
        "public access",
        Setting("GetPublicAccessBlock", "publicAccessBlock", "PublicAccessBlockConfiguration"),
        _public,
    ),
    ("versioning", VERSIONING, _versioning),
    ("encryption", ENCRYPTION, _encryption),
    ("Object Lock", OBJECT_LOCK, _lock),
    (
        "replication",
        Setting("GetBucketReplication", "replication", "ReplicationConfiguration"),
        _replication,
    ),
    (
        "lifecycle",
        Setting("GetBucketLifecycleConfiguration", "lifecycle", "LifecycleConfiguration"),
        _lifecycle,
    ),
)
"""Settings of a bucket to check: title for messages, request, and function for the finding."""


def _conditional(what: str, prefix: str, store: Bucket, *, claims: bool) -> Iterator[Finding]:
    """Write an object twice on condition that it is absent; the second write has to fail.

    Functions on AWS Lambda claim their events with such writes.
    """
    key = f"{prefix}doctor-{secrets.token_hex(8)}"
    try:
        store.put(key, b"+", if_absent=True)
    except OperationError as exc:
        yield fail(what, f"cannot be written: {exc}", exc.hint)
        return
    try:
        store.put(key, b"-", if_absent=True)
    except OperationError as exc:
        if exc.status == _IS_THERE:
            yield ok(what, "can be written, and honours If-None-Match")
        else:
            text = f"a request with If-None-Match fails: {exc}"
            yield warn(what, text, 'see "Stores" in the documentation')
    else:
        # Functions claim events below the control prefix, which needs conditional puts.
        judge = fail if prefix == CONTROL_PREFIX else warn
        text = "ignores If-None-Match: an event that is delivered twice would run twice"
        if claims:
            yield judge(what, text, "put the control prefix into a store that honours it")
        else:
            yield ok(what, "can be written, and ignores If-None-Match")
    try:
        store.delete(key, etag="")
    except OperationError:
        hint = "delete it, for instance with the cleaner's policy, or let it expire"
        yield warn(what, f"the test object {key} could not be deleted", hint)


_COLORS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_PLACE: Final = ("scheduler", "slots")
"""Settings for the machines on which an executor runs functions."""


def with_flags_in(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with flags in place of settings."""
    for raw in findings:
        yield replace(raw, text=with_flags(raw.text), hint=with_flags(raw.hint))


def show_findings(findings: Iterable[Finding]) -> bool:
    """Print each finding as it arrives, and return whether one prevents a run."""
    failed = False
    for finding in findings:
        hint = f" -> {finding.hint}" if finding.hint else ""
        line = f"{finding.level.value:4}  {finding.what}: {finding.text}{hint}"
        say(line, fg=_COLORS[finding.level])
        failed |= finding.level is Level.FAIL
    return failed


def examine(flags: Mapping[str, Any]) -> Iterator[Finding]:
    """Run the checks one after the other and yield their findings."""
    patient = Patient(
        region=flags["region"], run_s=flags["run_duration"], functions=flags["function"] or ()
    )
    yield from versions()
    yield from machine()
    yield from proxies(flags["endpoint_url"])
    yield from _place(flags)
    if flags["stack"] or flags["bucket"] or flags["function"]:
        yield from examine_account(flags, patient)


def examine_account(flags: Mapping[str, Any], patient: Patient) -> Iterator[Finding]:
    """Run the checks of an account, its functions and buckets."""
    cloud = cloud_of(parse_bucket(flags["bucket"] or "")[0])
    yield from _credentials(cloud, flags, patient)
    if flags["stack"] is not None:
        yield from unless_it_fails(f"stack {flags['stack']}", stack(flags["stack"], patient))
    # Stores outside AWS usually have no STS to request our identity from.
    if patient.functions or (flags["endpoint_url"] is None and cloud is None):
        yield from unless_it_fails("identity", identity(patient))
    if patient.functions:
        yield quota(patient)
        yield network_quota(patient)
    for name in patient.functions:
        yield from unless_it_fails(f"function {name}", function(name, patient))
    buckets = [
        replace(bucket, sse=flags.get("sse") or "")
        for bucket in _buckets(flags["bucket"], flags["endpoint_url"], patient)
    ]
    for name in patient.functions if flags["probe"] else ():
        yield from unless_it_fails(f"function {name}", _answers(name, patient, *buckets[:1]))
    for bucket in buckets:
        yield from look_at(bucket, patient, write_test=flags["write_test"])


def _place(flags: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the machines of the executor from --executor, or of executors with these settings."""
    given = {name: flags[name] for name in _PLACE if flags[name] is not None}
    names = [flags["executor"]] if flags["executor"] else []
    if given and not names:
        names = executors_where(lambda info: not info.settings.isdisjoint(given))
    for name in names:
        if examine := info_of(name).examine:
            yield from unless_it_fails(name, resolve_name(examine)(**given))


def _credentials(
    cloud: Cloud | None, flags: Mapping[str, Any], patient: Patient
) -> Iterator[Finding]:
    """Check the credentials of a cloud, and those of AWS if a stack or a function needs them."""
    if cloud is not None and cloud.has_credentials(flags["endpoint_url"] or ""):
        yield ok("credentials", "from the environment; no expiry is known")
    elif cloud is not None:
        yield fail("credentials", "there are none", cloud.credentials_hint)
    if cloud is None or flags["stack"] or flags["function"]:
        yield from unless_it_fails("credentials", credentials(patient))


def _answers(name: str, patient: Patient, target: Target | None = None) -> Iterator[Finding]:
    """Invoke a function once, and check its environment and its access to objects of jobs."""
    control = None
    if target is not None:
        target = resolve(target)
        control = replace(target, prefix=CONTROL_PREFIX)
        if patient.stack is not None:
            control = resolve(
                Target(
                    bucket=patient.stack.control_bucket,
                    prefix=CONTROL_PREFIX,
                    region=patient.stack.region,
                    sse=target.sse,
                )
            )
    region = patient.region or (target and target.region)
    for try_out in filter(None, (info_of(executor).try_out for executor in EXECUTORS)):
        yield from resolve_name(try_out)(name, region, target, control)


def _buckets(named: str | None, url: str | None, patient: Patient) -> Iterator[Target]:
    stack = patient.stack
    place: dict[str, Any] = {"endpoint_url": url or "", "region": patient.region or ""}
    for text in dict.fromkeys(filter(None, [named, stack.data_bucket if stack else None])):
        protocol, name, _ = parse_bucket(text)
        yield Target(bucket=name, protocol=protocol, **place)
    if stack is not None:
        yield Target(bucket=stack.control_bucket, prefix=CONTROL_PREFIX, **place)
