"""Requests to a bucket before and during a run, sent by the client for control requests.

Importing botocore costs 0.2 s of CPU time, most of the time of a small run, and botocore does not
time out as long as a store sends a byte now and then. It is used only to find the region and
endpoint of a bucket on AWS (``target``).
"""

import re
import ssl
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Final, TypeVar
from urllib.parse import urlsplit

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.control import open_control_client
from serverless_bench.clients.environment import PROXY_HINT, certificate_problem
from serverless_bench.clients.listings import (
    ObjectVersion,
    OpenUpload,
    read_versions,
    versions_query,
)
from serverless_bench.clients.s3_http import NO_HEADERS, document, texts
from serverless_bench.clients.wire import WireClient
from serverless_bench.errors import (
    AccessDenied,
    BadResponse,
    DeadlineExceeded,
    NotFound,
    OperationError,
    StoreError,
    WrongRegion,
    last_failure,
)
from serverless_bench.job.endpoint import is_aws, is_here
from serverless_bench.job.target import Target, check_bucket
from serverless_bench.job.transfer import Transfer
from serverless_bench.units import KIB, whole_number
from serverless_bench.version import __version__
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.object_io import GIVE_UP_S, Head, ObjectIO, pages

_TRANSFER: Final = Transfer(block_size=64 * KIB, timeout=10.0, retries=2)
_THERE: Final = 409
_NOT_OFFERED: Final = frozenset({404, 405, 501})
"""Statuses of stores without a list of open uploads; rclone returns 404."""
_MOST_SURVEYED: Final = 1000
"""Number of pages of a listing after which counting stops."""

_REGION: Final = re.compile(r"[a-zA-Z0-9-]{1,63}")

_USER_AGENT: Final = f"sbench/{__version__}"
"""Differs from the user agent of workers, so that a store's log separates these requests."""

T = TypeVar("T")


class BucketClient(WireClient):
    """The thin client with additional requests for the bucket itself.

    The clients of other clouds have the same methods (``obstore_control.CloudControl``), except
    those for versions and settings, which are used with S3 only.
    """

    def head_bucket(self, exchange: Exchange, owner: str = "") -> str:
        """Return the region in the response; empty if there is none."""
        headers = {"x-amz-expected-bucket-owner": owner} if owner else NO_HEADERS
        response = self._send("HeadBucket", "", exchange, headers=headers)
        region = response.headers.get("x-amz-bucket-region", "")
        return region if _REGION.fullmatch(region) else ""

    def create_bucket(self, exchange: Exchange) -> None:
        """Create the bucket; the store responds with status 409 if it exists."""
        self._send("CreateBucket", "", exchange)

    def read_setting(self, setting: "Setting", exchange: Exchange) -> ET.Element:
        """Return the XML document of a setting of an S3 bucket."""
        response = self._send(setting.operation, "", exchange, query=f"{setting.query}=")
        # moto names the root element after the operation; most S3 clients ignore the name.
        others = f"{setting.operation}Response"
        name = others if others.encode() in response.text else setting.root
        return document(response.text, name, "how that is set")

    def list_sizes(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[list[str], list[int], bool]:
        """Return a page of keys, the sizes of their objects, and whether more pages follow."""
        listed, keys, has_more = self._list(prefix, after, exchange)
        sizes = [whole_number(text) for text in texts(listed, "Size")]
        return keys, [size for size in sizes if size is not None], has_more

    def list_versions(
        self, prefix: str, after: ObjectVersion | None, exchange: Exchange
    ) -> tuple[list[ObjectVersion], ObjectVersion | None]:
        """Return a page of versions, and the version after which the next page starts."""
        query = versions_query(prefix, after)
        response = self._send("ListObjectVersions", "", exchange, query=query)
        return read_versions(response.text, prefix)

    def delete_version(self, version: ObjectVersion, exchange: Exchange) -> None:
        """Delete a version or delete marker permanently."""
        self._send("DeleteObject", version.key, exchange, query=version.query)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a whole bucket."""

    operation: str
    """Name of the operation that reads it in the S3 API."""
    query: str
    root: str
    """Root element of the response."""


ENCRYPTION: Final = Setting(
    "GetBucketEncryption", "encryption", "ServerSideEncryptionConfiguration"
)


class Bucket(ObjectIO):
    """A bucket with a known endpoint.

    Parameters
    ----------
    target
        Location of the bucket; its prefix is ignored, so that names are complete keys.
    requests
        Counter to which billed requests are added, by kind.
    give_up_s
        Same as in ``ObjectIO``.

    Raises
    ------
    UsageError
        If the bucket's name is invalid.
    """

    _client: BucketClient

    def __init__(
        self,
        target: Target,
        requests: Counter[str] | None = None,
        *,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        check_bucket(target.bucket)
        whole = replace(target, prefix="")
        opener = partial(open_control_client, s3=BucketClient, called=_USER_AGENT)
        super().__init__(whole, transfer=_TRANSFER, opener=opener, give_up_s=give_up_s)
        if requests is not None:
            self.requests = requests

    def ask(self) -> str | None:
        """Check that the bucket exists, and return the ``Date`` of the response.

        Raises
        ------
        OperationError
            If it does not exist or access is denied; the other methods raise this, too.
        """

        def head(meter: Meter) -> str | None:
            self._client.head_bucket(meter)
            return meter.date

        return self._run("head", head)

    def region(self, owner: str = "") -> str:
        """Return the region that the store reports, if any; ``owner`` is the expected owner."""
        return self._run("head", partial(self._client.head_bucket, owner=owner))

    def read_setting(self, setting: Setting) -> ET.Element:
        """Return the XML document of a setting."""
        return self._run("get", partial(self._client.read_setting, setting))

    def ensure(self) -> None:
        """Create the bucket if it does not exist."""
        try:
            self._run("create", self._client.create_bucket)
        except OperationError as exc:
            if exc.status != _THERE:
                raise

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that start with ``prefix``."""

        def page(after: str) -> tuple[list[str], bool]:
            return self._run("list", partial(self._client.list_keys, prefix, after))

        yield from chain.from_iterable(pages(page))

    def survey(self, prefix: str) -> tuple[list[str], int, bool]:
        """List the objects with keys that start with ``prefix``.

        Returns
        -------
        list of str, int, bool
            Their keys, their total size in bytes, and whether the list is complete.
        """
        keys_of_prefix, size = list[str](), 0

        def page(after: str) -> tuple[list[str], bool]:
            nonlocal size
            call = partial(self._client.list_sizes, prefix, after)
            keys, sizes, has_more = self._run("list", call)
            size += sum(sizes)
            return keys, has_more

        for number, keys in enumerate(pages(page), start=1):
            keys_of_prefix += keys
            if number == _MOST_SURVEYED:
                return keys_of_prefix, size, False
        return keys_of_prefix, size, True

    def uploads(self, prefix: str) -> list[OpenUpload] | None:
        """Return the open uploads below ``prefix``; None if the store cannot list them."""
        try:
            return [*self._marked("open uploads", partial(self._client.list_uploads, prefix))]
        except OperationError as exc:
            if exc.status not in _NOT_OFFERED:
                raise
            # A missing bucket causes the same status; this request raises an error then.
            self.ask()
            return None

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Yield the versions and delete markers of all keys that start with ``prefix``.

        Yields no versions if the store does not support them.
        """
        try:
            yield from self._marked("versions", partial(self._client.list_versions, prefix))
        except OperationError as exc:
            if exc.status not in _NOT_OFFERED:
                raise

    def _marked(
        self, what: str, call: Callable[[T | None, Exchange], tuple[list[T], T | None]]
    ) -> Iterator[T]:
        """Yield the entries of all pages of a list that is continued with a marker."""
        marker: T | None = None
        before: set[T | None] = set()
        while marker not in before and len(before) <= _MOST_SURVEYED:
            before.add(marker)
            page, marker = self._run("list", partial(call, marker))
            yield from page
            if marker is None:
                return
        raise BadResponse(f"the list of {what} does not end", status=200)

    def head_version(self, version: ObjectVersion, length: int) -> Head:
        """Return the first bytes of a version."""
        call = partial(self._client.get_head, version.key, length, query=version.query)
        return Head.of(*self._run("get", call))

    def delete_version(self, version: ObjectVersion) -> None:
        """Delete a version or delete marker permanently."""
        with suppress(NotFound):
            self._run("delete", partial(self._client.delete_version, version))

    def abort(self, upload: OpenUpload) -> None:
        """Abort a multipart upload."""
        call = partial(self._client.abort_multipart, upload.key, upload.upload_id)
        with suppress(NotFound):
            self._run("abort_multipart", call)

    def _run(self, request: str, call: Callable[[Meter], T], timeout_s: float | None = None) -> T:
        try:
            return super()._run(request, call, timeout_s)
        except DeadlineExceeded as exc:
            if exc.__cause__ is not None:
                # The cause is the error of an earlier attempt, which has more details.
                raise
            raise DeadlineExceeded(f"no complete response within {self._give_up_s:g} s") from None


@contextmanager
def open_bucket(target: Target, requests: Counter[str] | None = None) -> Iterator[Bucket]:
    """Yield an open bucket; its errors are ``explained``."""
    with explained(target), closing(Bucket(target, requests)) as bucket:
        yield bucket


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn errors of a bucket's requests into a line for the user."""
    where = f"bucket {target.bucket_name!r}"
    try:
        yield
    except NotFound as exc:
        url = target.endpoint_url
        is_own = bool(url) and target.protocol not in CLOUDS and not is_aws(url)
        raise missing(where, "`create_bucket` creates it" if is_own else "create it") from exc
    except AccessDenied as exc:
        if target.protocol in CLOUDS:
            raise _no_access(where, exc, CLOUDS[target.protocol].credentials_hint) from exc
        if exc.status is None:
            raise credentials(exc.__cause__, target.endpoint_url) from exc
        raise refused(where, str(exc)) from exc
    except WrongRegion as exc:
        hint = "name where the bucket is: `endpoint_url`, `region`"
        raise StoreError(f"{where}: {exc}", hint=hint) from exc
    except OperationError as exc:
        if exc.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise unreachable(target, f"the proxy {exc}", is_tls=False, hint=PROXY_HINT) from exc
        if exc.status is not None:
            raise StoreError(f"{where}: the store answered {exc}") from exc
        is_tls = isinstance(exc.__cause__, ssl.SSLError) or "[SSL" in str(exc)
        raise unreachable(
            target, str(exc), is_tls=is_tls, hint=getattr(last_failure(exc), "hint", "")
        ) from exc


def missing(where: str, remedy: str = "create it") -> StoreError:
    """Return the error for a bucket that does not exist."""
    return StoreError(f"{where} does not exist", hint=f"{remedy}, or name another `bucket`")


def refused(where: str, why: str) -> StoreError:
    """Return the error for a bucket to which access is denied."""
    from serverless_bench.aws.client import CLOCK_HINT, is_skewed  # noqa: PLC0415

    if is_skewed(why):
        return StoreError(f"{where} refuses this machine's clock ({why})", hint=CLOCK_HINT)
    hint = "check AWS_ACCESS_KEY_ID or AWS_PROFILE, and their permissions"
    return StoreError(f"{where} refuses these credentials ({why})", hint=hint)


def _no_access(where: str, exc: AccessDenied, hint: str) -> StoreError:
    """Return the error for a bucket of another cloud to which access is denied."""
    if exc.status is not None:
        return StoreError(f"{where} refuses these credentials ({exc})", hint=hint)
    return StoreError(f"{where}: {exc}", hint="" if hint in str(exc) else hint)


def credentials(cause: BaseException | None, endpoint_url: str = "") -> StoreError:
    """Return the error for missing credentials, with botocore's reason if there is one."""
    if cause is None:
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        if is_here(urlsplit(endpoint_url).hostname or ""):
            hint += "; sbench store status --env prints those of the embedded store"
        return StoreError("there are no credentials", hint=hint)
    # botocore is imported already if it is the cause.
    from serverless_bench.aws.client import CREDENTIALS, credentials_error  # noqa: PLC0415

    if isinstance(cause, CREDENTIALS):
        error = credentials_error(cause)
        return StoreError(str(error), hint=error.hint)
    # The profile does not exist or contains no credentials.
    hint = "check AWS_PROFILE and its section in ~/.aws"
    return StoreError(f"there are no credentials: {cause}", hint=hint)


def unreachable(target: Target, why: str, *, is_tls: bool, hint: str = "") -> StoreError:
    """Return the error for a store that does not respond; ``hint`` comes from the cause."""
    host = urlsplit(target.endpoint_url).netloc or "AWS"
    if not is_tls:
        hint = hint or "check `endpoint_url`, and that the store runs"
        return StoreError(f"{host} does not answer: {why}", hint=hint)
    if "certificate" in why.lower():
        problem, hint = certificate_problem(why)
        return StoreError(f"the certificate of {host} {problem}", hint=hint)
    hint = f"`endpoint_url` http://{host} if it speaks http"
    return StoreError(f"{host} does not speak https", hint=hint)
