"""obstore: Rust's ``object_store`` crate with a Python interface, for S3, Azure and Google.

Its retries are disabled, so a call is normally one request. But it follows redirects by itself and
hides the status of successful responses, and with ``multipart`` a put becomes several requests: its
attempts count as hidden. It needs the full body of a request in memory and reports no progress of a
put; bodies of gets are streamed.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final, Literal, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    BadResponse,
    ConnectionLost,
    NotFound,
    OperationError,
    TimedOut,
    WrongRegion,
)
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.clouds import CLOUDS, cloud_of
from serverless_bench.clients.environment import ca_bundle, certificate_error, find_keys, no_keys
from serverless_bench.clients.library import PAGE
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.clients.s3_http import encryption
from serverless_bench.features.library_clients.bodies import InMemoryClient, hand_on
from serverless_bench.features.library_clients.errors import error_in_text, translating
from serverless_bench.job.target import StoreProtocol
from serverless_bench.rundir.record import Shown

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, PutMode
    from obstore.store import ClientConfig, ObjectStore, S3Config

_STATUS: Final = re.compile(r"non-2xx status code: (\d{3}) [^:\n]*: ([^\0]*?)\n\nDebug source:")
_BATCHED: Final = re.compile(r"\(code: (\d{3})\)\n")
"""Status of a single request within an Azure batch."""
_SIGNS: Final[Mapping[str, type[OperationError]]] = {
    "kind: Timeout": TimedOut,
    "Parse(": BadResponse,
    "NotPartial": BadResponse,
    "HTTP error": ConnectionLost,
    "NotFound": NotFound,
    "Could not parse path": BadRequest,
    "invalid": BadResponse,
}
"""Fragments of the library's error messages; the first match wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstoreOptions:
    """The options of obstore."""

    multipart: bool = option(
        default=False, about="let obstore split writes: a put is several requests"
    )
    part_mb: int = option(5, "MiB of a part of obstore's own uploads", least=5)
    max_concurrency: int = option(12, "concurrent parts of one of obstore's own uploads", least=1)
    payload_signing: Literal["sha256", "unsigned"] = option(
        "sha256",
        "hash of the body in the signature, over http and https",
        s3_only=True,
    )
    checksum: Literal["none", "sha256"] = option("none", "checksum header of uploads", s3_only=True)
    put_timeout_s: float = option(
        600.0, "limit of a whole put; obstore cannot tell a slow one from a dead one", least=0.001
    )
    threads: int | None = option(
        None, "threads of its runtime (TOKIO_WORKER_THREADS); once per process", least=1
    )


class ObstoreClient(InMemoryClient[ObstoreOptions]):
    """Requests through ``obstore.store.S3Store``, or the store class of another provider."""

    info: ClassVar[ClientInfo] = ClientInfo(
        control="serverless_bench.features.obstore.control:CloudControl",
        attempts="hidden",
        progress="none",
        shows=frozenset({Shown.CONTENT_RANGE}),
        signing="SigV4, SHA-256 of the body unless payload_signing=unsigned",
        checksum="none unless checksum=sha256",
        forkable=False,
        operations=frozenset(
            {"put", "get", "range", "head", "list", "delete", "delete_many", "copy"}
        ),
        options=ObstoreOptions,
        encrypts=True,
        quirks=frozenset(
            {"follows_redirects", "looks_up_names", "partial_status", "plain_listings"}
        ),
        protocols=frozenset({StoreProtocol.S3, *map(StoreProtocol, CLOUDS)}),
    )

    def put(
        self, key: str, source: Source, exchange: Exchange, *, mode: "PutMode" = "overwrite"
    ) -> None:
        """Write an object; with ``multipart``, obstore chooses the number of requests."""
        if self._options.multipart:
            self._put_parts(key, source, exchange)
            return
        with self._in_memory(source, exchange) as body, self._translated(key):
            obstore.put(self._writer, key, body, mode=mode, use_multipart=False)
        exchange.moved(source.size)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        with self._translated(key):
            options: GetOptions = {} if length is None else {"range": (offset, offset + length)}
            response = obstore.get(self._reader, key, options=options)
            begin, end = response.range
            if length is not None:
                # The library accepts only status 206 for a range, and checks the header.
                where = f"bytes {begin}-{end - 1}/{response.meta['size']}"
                exchange.answered(HTTPStatus.PARTIAL_CONTENT, {"content-range": where})
            block_bytes = self._transfer.block_size
            # For a single block, a stream only adds cost.
            is_single = end - begin <= block_bytes
            chunks = (
                (response.bytes(),) if is_single else response.stream(min_chunk_size=block_bytes)
            )
            size = hand_on(chunks, sink, exchange)
        if size != end - begin:
            raise ConnectionLost("the connection ended before the object did")

    def head(self, key: str, exchange: Exchange) -> int:
        with self._translated(key):
            return obstore.head(self._reader, key)["size"]

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        entries, is_truncated = self._list(prefix, after)
        return [entry["path"] for entry in entries], is_truncated

    def delete(self, key: str, exchange: Exchange) -> None:
        """Delete an object; obstore sends it as a batch with a single key."""
        self.delete_many([key], exchange)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        try:
            with self._translated(*keys):
                obstore.delete(self._reader, list(keys))
        except NotFound:
            # Only S3 ignores a missing object. All providers report a missing bucket, as does a
            # listing.
            self._list(keys[0], "")
            if len(keys) > 1:
                # The library reports the first failure only.
                for key in keys:
                    self.delete(key, exchange)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        with self._translated(source, key):
            obstore.copy(self._reader, source, key)

    def _list(self, prefix: str, after: str) -> tuple[list["ObjectMeta"], bool]:
        """List keys below directories, because obstore treats a prefix as a directory.

        A partial name after the last slash is matched against the responses, starting at that name.
        """
        directory, _, rest = prefix.rpartition("/")
        start = after or (prefix[:-1] if rest else "")
        # Some versions of Azure start at the first key and ignore the offset.
        behind = "" if self._target.protocol is StoreProtocol.S3 else after
        entries: list[ObjectMeta] = []
        with self._translated():
            pages = obstore.list(self._reader, directory, offset=start or None, chunk_size=PAGE)
            for page in pages:
                matching = [entry for entry in page if entry["path"].startswith(prefix)]
                entries += [entry for entry in matching if entry["path"] > behind]
                is_past = matching[-1:] != page[-1:] and page[-1]["path"] > prefix
                # Another page is another request; the last key with the prefix closes the listing.
                if len(entries) >= PAGE or len(page) < PAGE or is_past:
                    break
        return entries[:PAGE], len(entries) >= PAGE

    def _put_parts(self, key: str, source: Source, exchange: Exchange) -> None:
        failures: list[OperationError] = []

        def blocks() -> Iterator[bytearray]:
            for offset in range(0, source.size, self._transfer.block_size):
                # obstore keeps blocks that are not sent yet, so each block needs fresh memory.
                block = bytearray(min(self._transfer.block_size, source.size - offset))
                source.readinto_at(offset, memoryview(block))
                try:
                    exchange.moved(len(block))
                except OperationError as exc:
                    failures.append(exc)
                    raise
                yield block

        with self._translated(key):
            try:
                obstore.put(
                    self._writer,
                    key,
                    blocks(),
                    use_multipart=True,
                    chunk_size=self._options.part_mb * MIB,
                    max_concurrency=self._options.max_concurrency,
                )
            except (BaseError, OSError):
                # Raised by sbench in the body while obstore was reading it.
                if failures:
                    raise failures[0] from None
                raise

    def _open(self) -> None:
        if self._options.threads is not None:
            os.environ["TOKIO_WORKER_THREADS"] = str(self._options.threads)
        # The read timeout would also limit a full upload, so puts have a separate timeout.
        self._reader = self._store(
            {"timeout": "365d", "read_timeout": _span(self._transfer.timeout)}
        )
        self._writer = self._store({"timeout": _span(self._options.put_timeout_s)})

    def _store(self, timeouts: "ClientConfig") -> "ObjectStore":
        connection: ClientConfig = {
            "allow_http": True,
            "connect_timeout": _span(self._connect_s),
            "user_agent": self._name,
            **timeouts,
        }
        if bundle := ca_bundle():
            connection["root_certificate"] = bundle.read_bytes()
        cloud = cloud_of(self._target.protocol)
        if cloud is None:
            return self._s3_store(connection)
        signs = cloud.has_credentials(self._endpoint_url)
        self._unsigned = None if signs else no_keys(cloud.credentials_hint)
        try:
            store: ObjectStore = cloud.open_store(self._target, self._endpoint_url, connection)
        except (BaseError, ValueError) as exc:
            # Invalid credentials, because no request has been sent yet.
            raise AccessDenied(str(exc).partition("\n")[0]) from exc
        return store

    def _s3_store(self, connection: "ClientConfig") -> S3Store:
        keys = find_keys()
        config: S3Config = {
            "region": self._region,
            # obstore does not insert the bucket into the host name by itself.
            "endpoint": f"{self._endpoint.scheme}://{self._host}{self._endpoint.path}"
            if self._virtual
            else self._endpoint_url,
            "virtual_hosted_style_request": self._virtual,
            "unsigned_payload": self._options.payload_signing == "unsigned",
        }
        config |= cast(
            "S3Config",
            encryption(self._target.sse, ("server_side_encryption", "sse_kms_key_id")),
        )
        if self._options.checksum != "none":
            config["checksum_algorithm"] = self._options.checksum
        if keys is not None:
            config["access_key_id"] = keys.access_key
            config["secret_access_key"] = keys.secret_key
            if keys.token:
                config["session_token"] = keys.token
        self._unsigned = None if keys else no_keys()
        return S3Store(
            self._bucket,
            config=config,
            client_options=connection,
            retry_config={"max_retries": 0},
        )

    @contextmanager
    def _translated(self, *keys: str) -> Iterator[None]:
        if self._unsigned is not None:
            raise AccessDenied(str(self._unsigned))
        for key in keys:
            # obstore would drop the extra slashes and use a different key.
            if key.startswith("/") or key.endswith("/") or "//" in key:
                raise BadRequest(f"obstore cannot address the key {key!r}: a slash is misplaced")
        with translating((BaseError, OSError, ValueError), error_of):
            yield


def error_of(text: str) -> OperationError:
    """Return the error for an error text of obstore, which provides no structured form."""
    short = text.partition("\n")[0][:200]
    if failed := _BATCHED.search(text):
        return s3_error(int(failed[1]), "", short, {})
    if status_and_text := _STATUS.search(text):
        return error_in_text(int(status_and_text[1]), status_and_text[2])
    if refused := certificate_error(text):
        return refused
    if "BareRedirect" in text:
        return WrongRegion(short, status=301)
    if "<Code>" in text or "(code: " in text:
        return error_in_text(500, text)
    return next((error for sign, error in _SIGNS.items() if sign in text), BadRequest)(short)


def _span(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"
