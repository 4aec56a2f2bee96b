"""Requests to a bucket before and during a run, sent by the client for control requests.

Importing botocore costs 0.2 s of CPU time, most of the time of a small run, and botocore does not
time out as long as a store sends a byte now and then. It is used only to find the region and
endpoint of a bucket on AWS (``target``).
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from serverless_bench.base.errors import (
    AccessDenied,
    BadResponse,
    DeadlineExceeded,
    NotFound,
    OperationError,
    WrongRegion,
)
from serverless_bench.base.units import KIB, whole_number
from serverless_bench.clients.base import Exchange, is_virtual
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.s3_http import (
    NO_HEADERS,
    OpenUpload,
    document,
    first_text,
    local_name,
)
from serverless_bench.clients.wire import WireClient
from serverless_bench.driver.store_errors import explained, skew
from serverless_bench.job.endpoint import is_aws
from serverless_bench.job.target import Target, Transfer, check_bucket
from serverless_bench.version import __version__
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.object_io import GIVE_UP_S, ObjectIO, open_control_client, pages

_TRANSFER: Final = Transfer(block_size=64 * KIB, timeout=10.0, retries=2)
_THERE: Final = 409
DENIED: Final = frozenset({401, 403})
_NOT_OFFERED: Final = frozenset({404, 405, 501}) | DENIED
"""Statuses of stores without a list of uploads, or without a right to it; rclone returns 404."""
_USUAL_REGIONS: Final = frozenset({"", "us-east-1"})
"""Regions that CreateBucket must not name."""
_S3_XML: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_MOST_SURVEYED: Final = 1000
"""Number of pages of a listing after which counting stops."""


_USER_AGENT: Final = f"sbench/{__version__}"
"""Differs from the user agent of workers, so that a store's log separates these requests."""

T = TypeVar("T")


def _owned_by(owner: str) -> Mapping[str, str]:
    return {"x-amz-expected-bucket-owner": owner} if owner else NO_HEADERS


def _location(region: str) -> bytes:
    root = ET.Element("CreateBucketConfiguration", xmlns=_S3_XML)
    ET.SubElement(root, "LocationConstraint").text = region
    return ET.tostring(root)


def is_not_offered(error: OperationError) -> bool:
    """Return whether a store has no such list, or these credentials no right to it."""
    return error.status in _NOT_OFFERED or str(error).startswith("NotImplemented")


class BucketClient(WireClient):
    """The thin client with additional requests for the bucket itself.

    The clients of other clouds have the same methods (``obstore_control.CloudControl``), except
    those for settings, which are used with S3 only.
    """

    def head_bucket(self, exchange: Exchange, owner: str = "") -> str:
        """Return the region in the response; empty if there is none."""
        response = self._send("HeadBucket", "", exchange, headers=_owned_by(owner))
        region = response.headers.get("x-amz-bucket-region", "")
        return region if re.fullmatch(r"[a-zA-Z0-9-]{1,63}", region) else ""

    def look_inside(self, exchange: Exchange, owner: str = "") -> str:
        """Ask like ``head_bucket`` with a GET, which has a body in its response, for the region."""
        query, headers = "list-type=2&max-keys=1", _owned_by(owner)
        response = self._send("ListObjectsV2", "", exchange, query=query, headers=headers)
        document(response.text, "ListBucketResult", "the list of keys")
        return self._region

    def create_bucket(self, exchange: Exchange, *, anywhere: bool = False) -> None:
        """Create the bucket, ``anywhere`` or in the region that requests are signed for.

        The store responds with status 409 if it exists.
        """
        body = b"" if anywhere or self._region in _USUAL_REGIONS else _location(self._region)
        self._send("CreateBucket", "", exchange, body=body)

    def read_setting(self, setting: "Setting", exchange: Exchange) -> ET.Element:
        """Return the XML document of a setting of an S3 bucket."""
        response = self._send(setting.operation, "", exchange, query=f"{setting.query}=")
        if b"<ListBucketResult" in response.text:
            raise BadResponse("the store answers with its objects", status=501)
        # moto names the root element after the operation; most S3 clients ignore the name.
        others = f"{setting.operation}Response"
        name = others if others.encode() in response.text else setting.root
        return document(response.text, name, "how that is set")

    def list_sizes(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[list[str], list[tuple[int, str]], bool]:
        """Return keys, sizes and storage classes of objects, and whether more pages follow."""
        listed, keys, has_more = self._list(prefix, after, exchange)
        entries = [entry for entry in listed if local_name(entry) == "Contents"]
        rows = [(first_text(entry, "Size"), first_text(entry, "StorageClass")) for entry in entries]
        return keys, [(whole_number(size) or 0, of) for size, of in rows], has_more


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
VERSIONING: Final = Setting("GetBucketVersioning", "versioning", "VersioningConfiguration")
OBJECT_LOCK: Final = Setting("GetObjectLockConfiguration", "object-lock", "ObjectLockConfiguration")


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
    _client_of_s3: ClassVar[type[BucketClient]] = BucketClient

    def __init__(
        self,
        target: Target,
        requests: Counter[str] | None = None,
        *,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        check_bucket(target.bucket)
        whole = replace(target, prefix="")
        host = urlsplit(target.endpoint_url).hostname or ""
        self._is_s3, self._signed_for = target.protocol not in CLOUDS, target.region
        self._is_virtual = not is_aws(target.endpoint_url) and is_virtual(
            target.addressing, host, target.bucket
        )
        opener = partial(open_control_client, s3=self._client_of_s3, called=_USER_AGENT)
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
        self.region()
        return self.date

    def region(self, owner: str = "") -> str:
        """Return the region that the store reports, if any; ``owner`` is the expected owner.

        The response to a HEAD has no body: where it is an error without a reason, or a store may
        have ignored the bucket in the host name, a GET follows.

        Raises
        ------
        OperationError
            As ``ask``.
        """
        failure: OperationError | None = None
        found = ""
        try:
            found = self._run("head", partial(self._client.head_bucket, owner=owner))
        except OperationError as exc:
            if exc.status is None or exc.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            failure = exc
        if self._is_s3 and (self._is_virtual if failure is None else str(failure)[:4] == "HTTP"):
            failure = self._reason(failure, owner)
        if failure is not None:
            raise failure
        return found

    def _reason(self, failure: OperationError | None, owner: str) -> OperationError | None:
        """Return the error of a GET where a HEAD had this one; None if only the HEAD is refused."""
        try:
            region = self._run("list", partial(self._client.look_inside, owner=owner))
        except OperationError as exc:
            if exc.status is None:
                return failure
            if exc.status in DENIED and (off := skew(self.date)):
                return AccessDenied(off, status=exc.status)
            if self._is_virtual and isinstance(exc, BadResponse):
                exc.hint = "`addressing` path"
            return exc
        if region != self._signed_for:
            # The client has followed the store: the next one shall not have to.
            return WrongRegion(f"it is in region {region}", region=region)
        return failure if isinstance(failure, NotFound) else None

    def read_setting(self, setting: Setting) -> ET.Element:
        """Return the XML document of a setting."""
        return self._run("get", partial(self._client.read_setting, setting))

    def ensure(self) -> None:
        """Create the bucket if it does not exist."""
        try:
            try:
                self._run("create", self._client.create_bucket)
            except OperationError as exc:
                # A store may have a region for signatures that is no location of buckets.
                if "InvalidLocationConstraint" not in str(exc):
                    raise
                self._run("create", partial(self._client.create_bucket, anywhere=True))
        except OperationError as exc:
            if exc.status != _THERE:
                raise

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that start with ``prefix``."""

        def page(after: str) -> tuple[list[str], bool]:
            return self._run("list", partial(self._client.list_keys, prefix, after))

        yield from chain.from_iterable(pages(page))

    def survey(self, prefix: str, most: int = 0) -> tuple[dict[str, tuple[int, str]], bool]:
        """Return sizes and storage classes by key below ``prefix``, and whether these are all."""
        found = dict[str, tuple[int, str]]()

        def page(after: str) -> tuple[list[str], bool]:
            call = partial(self._client.list_sizes, prefix, after)
            keys, entries, has_more = self._run("list", call)
            found.update(dict.fromkeys(keys, (0, "")))
            found.update(zip(keys, entries, strict=False))
            return keys, has_more

        for number, _ in enumerate(pages(page), start=1):
            if number == (most or _MOST_SURVEYED):
                return found, False
        return found, True

    def uploads(self, prefix: str) -> list[OpenUpload] | None:
        """Return the open uploads below ``prefix``; None without such a list, or a right to it."""
        try:
            return [*self.marked("open uploads", partial(self._client.list_uploads, prefix))]
        except OperationError as exc:
            if not is_not_offered(exc):
                raise
            # A missing bucket causes the same status; this request raises an error then.
            self.ask()
            return None

    def marked(
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
