"""What ``sbench doctor`` looks at in a bucket."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.aws.client import error_code, explained, open_client
from serverless_bench.cli.checkup import Finding, Patient, fail, ok, warn
from serverless_bench.errors import SbenchError

_Answer = Mapping[str, Any]

_NOTHING: Final = frozenset(
    {"NoSuchLifecycleConfiguration", "NoSuchPublicAccessBlockConfiguration"}
)
"""AWS's words for a setting that nobody has made."""
_ALL_BLOCKED: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One bucket to look at."""

    name: str
    prefix: str
    """Under which a test object may be written."""
    endpoint_url: str | None = None
    claims: bool = False
    """Whether functions claim their work in it, for which puts have to be conditional."""

    @property
    def what(self) -> str:
        """Begins its lines."""
        return f"bucket {self.name}"


def look_at(bucket: Bucket, patient: Patient, *, write_test: bool) -> Iterator[Finding]:
    """Yield what is found about one bucket.

    Parameters
    ----------
    bucket
        Which.
    patient
        Whose account and functions.
    write_test
        Whether to write a small object, and delete it.
    """
    client = open_client("s3", region=patient.region, endpoint_url=bucket.endpoint_url)
    owner = {"ExpectedBucketOwner": patient.account} if patient.account else {}
    with closing(client):
        try:
            with explained(bucket.what):
                head = client.head_bucket(Bucket=bucket.name, **owner)
        except SbenchError as exc:
            yield _refused(bucket, exc, owned=bool(owner))
            return
        yield from _region(bucket, patient, head)
        for title, call, judge in _QUESTIONS:
            try:
                answer = _ask(client, call, bucket)
            except SbenchError as exc:
                text = f"{title}: cannot tell ({error_code(exc) or exc})"
                yield warn(bucket.what, text, "allow it, or look yourself")
            else:
                yield judge(bucket.what, answer)
        if write_test:
            yield from _conditional(bucket, client)


def _refused(bucket: Bucket, exc: SbenchError, *, owned: bool) -> Finding:
    match error_code(exc):
        case "404":
            text, hint = "does not exist", "create it, or deploy the stack again"
        case "301" | "400":
            text, hint = "is in another region", "name it: --region"
        case "403":
            text = "is not ours, or refuses us" if owned else "refuses us"
            hint = "check whose it is, and what these credentials may do"
        case _:
            text, hint = str(exc), exc.hint
    return fail(bucket.what, text, hint)


def _region(bucket: Bucket, patient: Patient, head: Any) -> Iterator[Finding]:  # noqa: ANN401
    found = head["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    account = f", owned by {patient.account}" if patient.account else ""
    yield ok(bucket.what, f"there{account}" + (f", in {found}" if found else ""))
    for setup in patient.setups:
        # arn:aws:lambda:REGION:ACCOUNT:function:NAME
        region = setup.arn.split(":")[3]
        if found and region != found:
            text = f"in {found}, function {setup.name} in {region}: every byte is billed"
            yield warn(bucket.what, text, "keep functions and buckets in one region")


def _ask(client: Any, call: str, bucket: Bucket) -> _Answer:  # noqa: ANN401 - botocore's
    """Return an answer; nothing set is an empty one."""
    try:
        with explained(call):
            answer: _Answer = getattr(client, call)(Bucket=bucket.name)
    except SbenchError as exc:
        if error_code(exc) not in _NOTHING:
            raise
        return {}
    return answer


def _public(what: str, answer: _Answer) -> Finding:
    blocks = answer.get("PublicAccessBlockConfiguration", {})
    if sum(bool(value) for value in blocks.values()) == _ALL_BLOCKED:
        return ok(what, "public access is blocked")
    return warn(what, "public access is not blocked", "block all four kinds of it")


def _versioning(what: str, answer: _Answer) -> Finding:
    if answer.get("Status") == "Enabled":
        text = "keeps versions: what is deleted goes on costing"
        return warn(what, text, "suspend versioning, or take another bucket")
    return ok(what, "keeps no versions")


def _lifecycle(what: str, answer: _Answer) -> Finding:
    rules = [rule for rule in answer.get("Rules", ()) if rule.get("Status") == "Enabled"]
    needed = {"objects": "Expiration", "open uploads": "AbortIncompleteMultipartUpload"}
    stay = [word for word, key in needed.items() if not any(key in rule for rule in rules)]
    if not stay:
        return ok(what, "forgotten objects and uploads expire")
    text = f"forgotten {' and '.join(stay)} stay, and cost"
    return warn(what, text, "add a lifecycle rule; sbench's template.yaml has one")


_QUESTIONS: Final[Sequence[tuple[str, str, Callable[[str, _Answer], Finding]]]] = (
    ("public access", "get_public_access_block", _public),
    ("versioning", "get_bucket_versioning", _versioning),
    ("lifecycle", "get_bucket_lifecycle_configuration", _lifecycle),
)
"""What is asked of a bucket: for a message, for botocore, and who judges the answer."""


def _conditional(bucket: Bucket, client: Any) -> Iterator[Finding]:  # noqa: ANN401 - botocore's
    """Write one object twice, the second time only if it is absent."""
    key = f"{bucket.prefix}doctor-{secrets.token_hex(8)}"
    where = {"Bucket": bucket.name, "Key": key}
    try:
        with explained(bucket.what):
            client.put_object(**where, Body=b"+", IfNoneMatch="*")
    except SbenchError as exc:
        yield fail(bucket.what, f"cannot be written: {exc}", exc.hint)
        return
    try:
        client.put_object(**where, Body=b"-", IfNoneMatch="*")
    except boto.ClientError as exc:
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if status == 412:
            yield ok(bucket.what, "can be written, and honours If-None-Match")
        else:
            text = f"If-None-Match is answered with {status}"
            yield warn(bucket.what, text, "see docs/stores.md")
    else:
        judge = fail if bucket.claims else warn
        text = "ignores If-None-Match: what is delivered twice would run twice"
        yield judge(bucket.what, text, "keep the control prefix in a store that honours it")
    try:
        with explained(bucket.what):
            client.delete_object(**where)
    except SbenchError:
        hint = "it expires, or delete it; the cleaner's policy allows that"
        yield warn(bucket.what, f"the test object {key} could not be deleted", hint)
