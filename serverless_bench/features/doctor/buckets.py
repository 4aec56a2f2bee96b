"""Checks of ``sbench doctor`` for a bucket."""

import secrets
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Final

from serverless_bench.base.errors import (
    AccessDenied,
    OperationError,
    SbenchError,
    StoreError,
    UsageError,
)
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import ENCRYPTION, OBJECT_LOCK, VERSIONING, Bucket, Setting
from serverless_bench.driver.plan import LOCKED, NO_LOCK, is_locked
from serverless_bench.driver.store_errors import explained
from serverless_bench.driver.target import resolve, uses_kms
from serverless_bench.features.doctor.base import Patient
from serverless_bench.features.doctor.findings import Finding, fail, ok, warn
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.endpoint import is_billed_by_aws, is_directory_bucket
from serverless_bench.job.target import StoreProtocol, Target

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
    if is_locked(answer):
        return fail(what, LOCKED, NO_LOCK)
    return ok(what, "has no Object Lock")


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
