"""What the driver asks of a bucket before a run and beside it, through the client for control.

botocore would be ready after 0.2 core-s, most of what a small run takes, and waits for as long as
a store sends a byte now and then. It is left to what only it knows: where on AWS a bucket is
(``target``).
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
from serverless_bench.clients.environment import CA_HINT, PROXY_HINT
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
    UsageError,
    WrongRegion,
    last_failure,
)
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.units import KIB, whole_number
from serverless_bench.version import __version__
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.object_io import GIVE_UP_S, Head, ObjectIO, pages

_TRANSFER: Final = Transfer(block_size=64 * KIB, timeout=10.0, retries=2)
_THERE: Final = 409
_NOT_OFFERED: Final = frozenset({404, 405, 501})
"""What stores answer that have no list of open uploads; the first is rclone's."""
_MOST_SURVEYED: Final = 1000
"""Pages of a listing whose objects are counted, and no further."""

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,255}")
"""Names that S3 had at some time, as botocore takes them."""

_REGION: Final = re.compile(r"[a-zA-Z0-9-]{1,63}")

_USER_AGENT: Final = f"sbench/{__version__}"
"""No worker: a store's log tells whose request it was."""

T = TypeVar("T")


class BucketClient(WireClient):
    """The thin client, with the requests that are about a bucket itself.

    The clients of other clouds have the same methods (``obstore_control.CloudControl``), but for
    those of versions and settings, which nobody asks them for.
    """

    def head_bucket(self, exchange: Exchange, owner: str = "") -> str:
        """Return the region that the store says, if it says one."""
        headers = {"x-amz-expected-bucket-owner": owner} if owner else NO_HEADERS
        response = self._send("HeadBucket", "", exchange, headers=headers)
        found = response.headers.get("x-amz-bucket-region", "")
        return found if _REGION.fullmatch(found) else ""

    def create_bucket(self, exchange: Exchange) -> None:
        """Make the bucket; 409 refuses one that is there."""
        self._send("CreateBucket", "", exchange)

    def read_setting(self, setting: "Setting", exchange: Exchange) -> ET.Element:
        """Return the document that says how something is set of an S3 bucket."""
        response = self._send(setting.operation, "", exchange, query=f"{setting.query}=")
        # moto calls documents by the operation, and nobody who reads them minds.
        others = f"{setting.operation}Response"
        name = others if others.encode() in response.text else setting.root
        return document(response.text, name, "how that is set")

    def list_sizes(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[list[str], list[int], bool]:
        """Return a page of keys with the sizes of their objects, and whether there are more."""
        listed, keys, more = self._list(prefix, after, exchange)
        sizes = [whole_number(text) for text in texts(listed, "Size")]
        return keys, [size for size in sizes if size is not None], more

    def list_versions(
        self, prefix: str, after: ObjectVersion | None, exchange: Exchange
    ) -> tuple[list[ObjectVersion], ObjectVersion | None]:
        """Return a page of versions, and after which one the next page begins."""
        query = versions_query(prefix, after)
        response = self._send("ListObjectVersions", "", exchange, query=query)
        return read_versions(response.text, prefix)

    def delete_version(self, version: ObjectVersion, exchange: Exchange) -> None:
        """Delete one version, or one delete marker, for good."""
        self._send("DeleteObject", version.key, exchange, query=version.query)


@dataclass(frozen=True, slots=True)
class Setting:
    """Something that is set of a whole bucket."""

    operation: str
    """That reads it, as the S3 API calls it."""
    query: str
    root: str
    """Of the document that says it."""


ENCRYPTION: Final = Setting(
    "GetBucketEncryption", "encryption", "ServerSideEncryptionConfiguration"
)


class Bucket(ObjectIO):
    """A bucket with a known endpoint.

    Parameters
    ----------
    target
        Names are whole keys: its prefix does not count.
    requests
        Grows by the billed requests, by kind.
    give_up_s
        As in ``ObjectIO``.

    Raises
    ------
    UsageError
        If no bucket can be called so.
    """

    _client: BucketClient

    def __init__(
        self,
        target: Target,
        requests: Counter[str] | None = None,
        *,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        if not _NAME.fullmatch(target.bucket):
            raise UsageError(f"{target.bucket!r} is not a bucket name")
        whole = replace(target, prefix="")
        opener = partial(open_control_client, s3=BucketClient, called=_USER_AGENT)
        super().__init__(whole, transfer=_TRANSFER, opener=opener, give_up_s=give_up_s)
        if requests is not None:
            self.requests = requests

    def ask(self) -> str | None:
        """Ask whether it is there, and return the ``Date`` of the response.

        Raises
        ------
        OperationError
            If it is not, or not ours to use; this holds for the other methods, too.
        """

        def head(meter: Meter) -> str | None:
            self._client.head_bucket(meter)
            return meter.date

        return self._run("head", head)

    def region(self, owner: str = "") -> str:
        """Return the region that the store says, if any; ``owner`` is whose it has to be."""
        return self._run("head", partial(self._client.head_bucket, owner=owner))

    def read_setting(self, setting: Setting) -> ET.Element:
        """Return the document that says how something is set."""
        return self._run("get", partial(self._client.read_setting, setting))

    def ensure(self) -> None:
        """Make it, unless it is there."""
        try:
            self._run("create", self._client.create_bucket)
        except OperationError as exc:
            if exc.status != _THERE:
                raise

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with ``prefix``."""

        def page(after: str) -> tuple[list[str], bool]:
            return self._run("list", partial(self._client.list_keys, prefix, after))

        yield from chain.from_iterable(pages(page))

    def survey(self, prefix: str) -> tuple[list[str], int, bool]:
        """Look at the objects whose keys begin with ``prefix``.

        Returns
        -------
        list of str, int, bool
            Their keys, how many bytes they have, and whether these are all.
        """
        found, size = list[str](), 0

        def page(after: str) -> tuple[list[str], bool]:
            nonlocal size
            call = partial(self._client.list_sizes, prefix, after)
            keys, sizes, more = self._run("list", call)
            size += sum(sizes)
            return keys, more

        for number, keys in enumerate(pages(page), start=1):
            found += keys
            if number == _MOST_SURVEYED:
                return found, size, False
        return found, size, True

    def uploads(self, prefix: str) -> list[OpenUpload] | None:
        """Return the open uploads below ``prefix``; None if the store lists none."""
        try:
            return [*self._marked("open uploads", partial(self._client.list_uploads, prefix))]
        except OperationError as exc:
            if exc.status not in _NOT_OFFERED:
                raise
            # Of a bucket that is not there, too.
            self.ask()
            return None

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Yield every version and delete marker of the keys that begin with ``prefix``.

        Nothing is yielded of a store that has no versions.
        """
        try:
            yield from self._marked("versions", partial(self._client.list_versions, prefix))
        except OperationError as exc:
            if exc.status not in _NOT_OFFERED:
                raise

    def _marked(
        self, what: str, call: Callable[[T | None, Exchange], tuple[list[T], T | None]]
    ) -> Iterator[T]:
        """Yield the entries of all pages of a list that goes on behind a marker."""
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
        """Return how a version begins."""
        call = partial(self._client.get_head, version.key, length, query=version.query)
        return Head.of(*self._run("get", call))

    def delete_version(self, version: ObjectVersion) -> None:
        """Delete one version, or one delete marker, for good."""
        with suppress(NotFound):
            self._run("delete", partial(self._client.delete_version, version))

    def abort(self, upload: OpenUpload) -> None:
        """Give an upload up."""
        call = partial(self._client.abort_multipart, upload.key, upload.upload_id)
        with suppress(NotFound):
            self._run("abort_multipart", call)

    def _run(self, request: str, call: Callable[[Meter], T], timeout_s: float | None = None) -> T:
        try:
            return super()._run(request, call, timeout_s)
        except DeadlineExceeded as exc:
            if exc.__cause__ is not None:
                # Of an attempt before, which says more.
                raise
            raise DeadlineExceeded(f"no whole answer came in {self._give_up_s:g} s") from None


@contextmanager
def open_bucket(target: Target, requests: Counter[str] | None = None) -> Iterator[Bucket]:
    """Yield a bucket for the length of a block, whose errors are ``explained``."""
    with explained(target), closing(Bucket(target, requests)) as bucket:
        yield bucket


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn what a bucket's request raises into one line for the user."""
    where = f"bucket {target.bucket_name!r}"
    try:
        yield
    except NotFound as exc:
        raise missing(where) from exc
    except AccessDenied as exc:
        if target.protocol in CLOUDS:
            raise _no_access(where, exc, CLOUDS[target.protocol].credentials_hint) from exc
        if exc.status is None:
            raise credentials(exc.__cause__) from exc
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


def missing(where: str) -> StoreError:
    """Return the error of a bucket that is not there."""
    return StoreError(f"{where} does not exist", hint="create it, or name another `bucket`")


def refused(where: str, why: str) -> StoreError:
    """Return the error of a bucket that is not ours to use."""
    from serverless_bench.aws.client import CLOCK_HINT, is_skewed  # noqa: PLC0415

    if is_skewed(why):
        return StoreError(f"{where} refuses this machine's clock ({why})", hint=CLOCK_HINT)
    hint = "check AWS_ACCESS_KEY_ID or AWS_PROFILE, and what they may do"
    return StoreError(f"{where} refuses these credentials ({why})", hint=hint)


def _no_access(where: str, exc: AccessDenied, hint: str) -> StoreError:
    """Return why a bucket of another cloud is not ours to use."""
    if exc.status is not None:
        return StoreError(f"{where} refuses these credentials ({exc})", hint=hint)
    return StoreError(f"{where}: {exc}", hint="" if hint in str(exc) else hint)


def credentials(cause: BaseException | None) -> StoreError:
    """Return why nobody can sign a request: what botocore says, if it has been asked."""
    if cause is None:
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        return StoreError("there are no credentials", hint=hint)
    # It is here, then.
    from serverless_bench.aws.client import CREDENTIALS, credentials_error  # noqa: PLC0415

    if isinstance(cause, CREDENTIALS):
        found = credentials_error(cause)
        return StoreError(str(found), hint=found.hint)
    # A profile is not there, or says nothing.
    hint = "check AWS_PROFILE, and what it says in ~/.aws"
    return StoreError(f"there are no credentials: {cause}", hint=hint)


def unreachable(target: Target, why: str, *, is_tls: bool, hint: str = "") -> StoreError:
    """Return why nobody answers, as far as the error shows it; ``hint`` is the error's own."""
    host = urlsplit(target.endpoint_url).netloc or "AWS"
    if not is_tls:
        hint = hint or "check `endpoint_url`, and that the store runs"
        return StoreError(f"{host} does not answer: {why}", hint=hint)
    if "certificate" in why.lower():
        return StoreError(f"the certificate of {host} is not trusted", hint=CA_HINT)
    hint = f"`endpoint_url` http://{host} if it speaks http"
    return StoreError(f"{host} does not speak https", hint=hint)
