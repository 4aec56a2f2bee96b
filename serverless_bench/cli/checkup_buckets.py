"""What ``sbench doctor`` looks at in a bucket."""

import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.aws.client import error_code, explained, open_client
from serverless_bench.cli.checkup import Finding, Patient, fail, ok, warn
from serverless_bench.errors import SbenchError

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
        yield from _public(bucket, client)
        yield from _versioning(bucket, client)
        yield from _lifecycle(bucket, client)
        if write_test:
            yield from _conditional(bucket, client)


def _refused(bucket: Bucket, exc: SbenchError, *, owned: bool) -> Finding:
    code = error_code(exc)
    if code == "404":
        return fail(bucket.what, "does not exist", "create it, or deploy the stack again")
    if code in {"301", "400"}:
        return fail(bucket.what, "is in another region", "name it: --region")
    if code == "403":
        text = "is not ours, or refuses us" if owned else "refuses us"
        return fail(bucket.what, text, "check whose it is, and what these credentials may do")
    return fail(bucket.what, str(exc), exc.hint)


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


def _public(bucket: Bucket, client: Any) -> Iterator[Finding]:  # noqa: ANN401
    answer, why = _ask(client, "get_public_access_block", bucket)
    if why:
        yield warn(bucket.what, f"public access: cannot tell ({why})", "allow it, or look yourself")
        return
    blocks = answer.get("PublicAccessBlockConfiguration", {})
    if sum(bool(value) for value in blocks.values()) == _ALL_BLOCKED:
        yield ok(bucket.what, "public access is blocked")
    else:
        yield warn(bucket.what, "public access is not blocked", "block all four kinds of it")


def _versioning(bucket: Bucket, client: Any) -> Iterator[Finding]:  # noqa: ANN401
    answer, why = _ask(client, "get_bucket_versioning", bucket)
    if why:
        yield warn(bucket.what, f"versioning: cannot tell ({why})", "allow it, or look yourself")
    elif answer.get("Status") == "Enabled":
        text = "keeps versions: what is deleted goes on costing"
        yield warn(bucket.what, text, "suspend versioning, or take another bucket")
    else:
        yield ok(bucket.what, "keeps no versions")


def _lifecycle(bucket: Bucket, client: Any) -> Iterator[Finding]:  # noqa: ANN401
    answer, why = _ask(client, "get_bucket_lifecycle_configuration", bucket)
    if why:
        yield warn(bucket.what, f"lifecycle: cannot tell ({why})", "allow it, or look yourself")
        return
    rules = [rule for rule in answer.get("Rules", ()) if rule.get("Status") == "Enabled"]
    expires = any("Expiration" in rule for rule in rules)
    aborts = any("AbortIncompleteMultipartUpload" in rule for rule in rules)
    if expires and aborts:
        yield ok(bucket.what, "forgotten objects and uploads expire")
        return
    missing = [
        word for word, there in (("objects", expires), ("open uploads", aborts)) if not there
    ]
    text = f"forgotten {' and '.join(missing)} stay, and cost"
    yield warn(bucket.what, text, "add a lifecycle rule; sbench's template.yaml has one")


def _conditional(bucket: Bucket, client: Any) -> Iterator[Finding]:  # noqa: ANN401
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
            yield warn(
                bucket.what, f"If-None-Match is answered with {status}", "see docs/stores.md"
            )
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


def _ask(client: Any, call: str, bucket: Bucket) -> tuple[dict[str, Any], str]:  # noqa: ANN401
    """Return an answer and why there is none; nothing set is an empty answer."""
    try:
        with explained(call):
            answer: dict[str, Any] = getattr(client, call)(Bucket=bucket.name)
    except SbenchError as exc:
        code = error_code(exc)
        return {}, "" if code in _NOTHING else code or str(exc)
    return answer, ""
