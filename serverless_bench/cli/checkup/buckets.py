"""What ``sbench doctor`` looks at in a bucket."""

import secrets
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Final

from serverless_bench.cli.checkup.base import Patient
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import Bucket, Setting, explained
from serverless_bench.driver.remarks import VERSIONING
from serverless_bench.driver.target import resolve
from serverless_bench.errors import (
    AccessDenied,
    OperationError,
    SbenchError,
    StoreError,
    UsageError,
)
from serverless_bench.executors.findings import Finding, fail, ok, warn
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.target import StoreProtocol, Target

_GIVE_UP_S: Final = 12.0
"""Of each question to a bucket that is there."""
_NOTHING: Final = frozenset(
    {"NoSuchLifecycleConfiguration", "NoSuchPublicAccessBlockConfiguration"}
)
"""AWS's words for a setting that nobody has made."""
_BLOCKS: Final = (
    *("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls"),
    "RestrictPublicBuckets",
)
_IS_THERE: Final = 412


def look_at(bucket: Target, patient: Patient, *, write_test: bool) -> Iterator[Finding]:
    """Yield what is found about one bucket.

    Parameters
    ----------
    bucket
        Where it is, as far as the user says; a test object goes below its prefix.
    patient
        Whose account and functions.
    write_test
        Whether to write a small object, and delete it.
    """
    what = f"bucket {bucket.bucket_name}"
    try:
        target = resolve(bucket)
        with closing(Bucket(target, give_up_s=_GIVE_UP_S)) as store:
            with explained(target):
                found = store.region(patient.account or "")
            yield from _region(what, patient, found)
            if bucket.protocol is StoreProtocol.S3:
                yield from _settings(what, store)
            if write_test:
                yield from _conditional(what, bucket.prefix, store)
    except (StoreError, UsageError) as exc:
        yield _refused(bucket, exc, owned=patient.account is not None)


def _refused(bucket: Target, exc: SbenchError, *, owned: bool) -> Finding:
    what = f"bucket {bucket.bucket_name}"
    if owned and isinstance(exc.__cause__, AccessDenied) and exc.__cause__.status is not None:
        hint = "check whose it is, and what these credentials may do"
        return fail(what, "is not ours, or refuses us", hint)
    # Its line begins with the name already.
    text = str(exc).removeprefix(f"bucket {bucket.bucket_name!r}").removeprefix(":").lstrip()
    return fail(what, text, exc.hint)


def _region(what: str, patient: Patient, found: str) -> Iterator[Finding]:
    account = f", owned by {patient.account}" if patient.account else ""
    yield ok(what, f"there{account}" + (f", in {found}" if found else ""))
    for setup in patient.setups:
        # arn:aws:lambda:REGION:ACCOUNT:function:NAME
        region = setup.arn.split(":")[3]
        if found and region != found:
            text = f"in {found}, function {setup.name} in {region}: every byte is billed"
            yield warn(what, text, "keep functions and buckets in one region")


def _settings(what: str, store: Bucket) -> Iterator[Finding]:
    for title, setting, judge in _QUESTIONS:
        try:
            answer = _ask(store, setting)
        except OperationError as exc:
            yield warn(what, f"{title}: cannot tell ({exc})", "allow it, or look yourself")
            if exc.status is None:
                # It says nothing to the others either, and each takes its time.
                return
        else:
            yield judge(what, answer)


def _ask(store: Bucket, setting: Setting) -> ET.Element:
    """Return an answer; nothing set is an empty one."""
    try:
        return store.read_setting(setting)
    except OperationError as exc:
        if str(exc).partition(":")[0] not in _NOTHING:
            raise
        return ET.Element(setting.root)


def _public(what: str, answer: ET.Element) -> Finding:
    if all("true" in texts(answer, name) for name in _BLOCKS):
        return ok(what, "public access is blocked")
    return warn(what, "public access is not blocked", "block all four kinds of it")


def _versioning(what: str, answer: ET.Element) -> Finding:
    if "Enabled" in texts(answer, "Status"):
        text = "keeps versions: what is deleted goes on costing"
        return warn(what, text, "suspend versioning, or take another bucket")
    return ok(what, "keeps no versions")


def _lifecycle(what: str, answer: ET.Element) -> Finding:
    rules = [rule for rule in answer if "Enabled" in texts(rule, "Status")]
    needed = {"objects": "Expiration", "open uploads": "AbortIncompleteMultipartUpload"}
    stay = [word for word, name in needed.items() if not any(texts(rule, name) for rule in rules)]
    if not stay:
        return ok(what, "forgotten objects and uploads expire")
    text = f"forgotten {' and '.join(stay)} stay, and cost"
    return warn(what, text, "add a lifecycle rule; what `sbench aws stack` writes has one")


_QUESTIONS: Final[Sequence[tuple[str, Setting, Callable[[str, ET.Element], Finding]]]] = (
    (
        "public access",
        Setting("GetPublicAccessBlock", "publicAccessBlock", "PublicAccessBlockConfiguration"),
        _public,
    ),
    (
        "versioning",
        VERSIONING,
        _versioning,
    ),
    (
        "lifecycle",
        Setting("GetBucketLifecycleConfiguration", "lifecycle", "LifecycleConfiguration"),
        _lifecycle,
    ),
)
"""What is asked of a bucket: for a message, for the store, and who judges the answer."""


def _conditional(what: str, prefix: str, store: Bucket) -> Iterator[Finding]:
    """Write one object twice, the second time only if it is absent."""
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
            text = f"If-None-Match is answered with {exc}"
            yield warn(what, text, "see docs/stores.md")
    else:
        # Functions claim their work below that prefix, for which puts have to be conditional.
        judge = fail if prefix == CONTROL_PREFIX else warn
        text = "ignores If-None-Match: what is delivered twice would run twice"
        yield judge(what, text, "keep the control prefix in a store that honours it")
    try:
        store.delete(key, etag="")
    except OperationError:
        hint = "it expires, or delete it; the cleaner's policy allows that"
        yield warn(what, f"the test object {key} could not be deleted", hint)
