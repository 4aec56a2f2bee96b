"""minio-py as most applications use it, but without retries.

The library loads the body of a request into memory and hashes it there: SHA-256 for the signature
over http, MD5 for Content-MD5 over https; ``payload_signing`` chooses. It accepts a urllib3 pool
from the caller: the pool used here follows no redirects and counts bytes as they are sent. An
object is written in one request, like a part of the function body; with ``part_mb``, ``put_object``
splits it instead, in additional threads.
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO, ClassVar, Literal, cast
from xml.etree.ElementTree import ParseError

import certifi
import urllib3
from minio.datatypes import Part
from minio.deleteobjects import DeleteObject
from minio.error import MinioException
from urllib3.exceptions import HTTPError

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import ca_bundle, find_keys, no_keys
from serverless_bench.clients.library import (
    PAGE,
    LibraryClient,
    check_page,
    check_range,
    lower,
)
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.clients.s3_http import byte_range, document, encryption, response_error
from serverless_bench.clients.watched_pools import HERE
from serverless_bench.features.library_clients.bodies import hand_on
from serverless_bench.features.minio.requests import CountedMinio, CountedPool, error_of
from serverless_bench.rundir.record import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class MinioOptions:
    """The options of minio-py."""

    part_mb: int | None = option(
        None, "MiB of a part when put_object splits by itself; none: one request", least=5
    )
    num_parallel_uploads: int = option(3, "threads that send put_object's own parts", least=1)
    payload_signing: Literal["library", "sha256", "unsigned"] = option(
        "library", "hash of the body; the library takes SHA-256 over http, MD5 over https"
    )
    max_pool: int = option(64, "connections kept; the library's own pool has 10", least=1)


class MinioClient(LibraryClient[MinioOptions]):
    """Single S3 requests through ``minio.Minio``."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="body",
        # Same rules as `check_bucket_name` of minio-py.
        bucket_names=r"(?!.*(\.\.|\.-|-\.|-s3alias$|--ol-s3$))(?!(\d{1,3}\.){3}\d{1,3}$)"
        r"[A-Za-z0-9][A-Za-z0-9_.:-]{1,61}[A-Za-z0-9]",
        shows=frozenset(Shown) - {Shown.CONNECTION},
        signing="SigV4, SHA-256 of the body over http, UNSIGNED-PAYLOAD over https",
        checksum="none over http, Content-MD5 over https",
        options=MinioOptions,
        encrypts=True,
        quirks=frozenset({"ignores_proxies"}),
        attempts_hidden_by=frozenset({"part_mb"}),
    )

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        self.close()
        super().move(region=region, endpoint_url=endpoint_url)

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write an object; with ``part_mb``, in several requests."""
        part_bytes = (self._options.part_mb or 0) * MIB
        # 0 would select the default part size of the library, 5 MiB.
        whole = not part_bytes or source.size <= part_bytes
        with self._translated(exchange, whole=whole):
            self._minio.put_object(
                self._bucket,
                key,
                # The library calls only its read().
                cast("BinaryIO", _UploadBody(source, exchange)),
                source.size,
                # Headers of AWS are no metadata.
                metadata={**self._encryption},
                part_size=max(source.size, 5 * MIB) if whole else part_bytes,
                num_parallel_uploads=self._options.num_parallel_uploads,
            )
        if not whole and self._options.num_parallel_uploads > 1:
            # Threads of the library sent the parts.
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
        with self._translated(exchange):
            response = self._minio.get_object(self._bucket, key, offset, length or 0)
            try:
                wanted = byte_range(offset, length).get("range", "")
                check_range(wanted, response.status, lower(response.headers))
                self._receive(response, sink, exchange)
            except BaseException:
                # Closed, so that the connection with the rest of the body is not reused.
                response.close()
                raise
            finally:
                response.release_conn()

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        with self._translated(exchange):
            return self._minio.create_upload(self._bucket, key, {**self._encryption})

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        body = _UploadBody(source, exchange).read(source.size)
        with self._translated(exchange):
            return self._minio.send_part(self._bucket, key, body, None, upload_id, number)

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        parts = [Part(number, etag) for number, etag in enumerate(etags, start=1)]
        with self._translated(exchange):
            self._minio.complete_upload(self._bucket, key, upload_id, parts)
            # S3 may fail after a status of 200, but the library does not check for that.
            name = "CompleteMultipartUploadResult"
            document(HERE.response.data, name, "the confirmation of the upload")

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        with self._translated(exchange):
            self._minio.abort_upload(self._bucket, key, upload_id)

    def head(self, key: str, exchange: Exchange) -> int:
        with self._translated(exchange):
            return self._minio.stat_object(self._bucket, key).size or 0

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """List a page; a full page counts as truncated, although it may be the last."""
        with self._translated(exchange):
            listed = self._minio.list_objects(
                self._bucket, prefix, recursive=True, start_after=after or None
            )
            # The next page would be another request, so it is not fetched.
            keys = [entry.object_name or "" for entry in islice(listed, PAGE)]
        check_page(keys, prefix, more=False)
        return keys, len(keys) == PAGE

    def delete(self, key: str, exchange: Exchange) -> None:
        with self._translated(exchange):
            self._minio.remove_object(self._bucket, key)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        with self._translated(exchange):
            objects = [DeleteObject(key) for key in keys]
            for error in self._minio.remove_objects(self._bucket, objects):
                raise s3_error(500, error.code or "", error.message or "", {})

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Copy without the HEAD request that ``copy_object`` sends first."""
        with self._translated(exchange):
            self._minio.copy_in(self._bucket, source, key, self._encryption)

    def close(self) -> None:
        self._pool.clear()

    def _open(self) -> None:
        self._encryption = encryption(self._target.sse)
        self._pool = CountedPool(
            maxsize=self._options.max_pool,
            timeout=urllib3.Timeout(connect=self._connect_s, read=self._transfer.timeout),
            cert_reqs="CERT_REQUIRED",
            ca_certs=str(ca_bundle() or os.environ.get("SSL_CERT_FILE") or certifi.where()),
        )
        if self._endpoint.path:
            raise UsageError(
                f"minio-py has no endpoints with a path, as {self._endpoint_url} has",
                hint="use another `client`",
            )
        keys = find_keys()
        self._signs = keys is not None
        self._minio = CountedMinio(
            self._endpoint.netloc,
            access_key=keys.access_key if keys else None,
            secret_key=keys.secret_key if keys else None,
            session_token=keys.token if keys else None,
            secure=self._endpoint.scheme == "https",
            # With a region, the library does not request the location of the bucket.
            region=self._region,
            http_client=self._pool,
        )
        self._minio.setup(
            payload_signing=self._options.payload_signing,
            virtual=self._virtual,
            name=self._name,
        )

    def _receive(
        self,
        response: urllib3.BaseHTTPResponse,
        sink: Sink,
        exchange: Exchange,
    ) -> None:
        block_bytes = self._transfer.block_size
        # A read returns only when it is complete, so the first byte is read separately. It is
        # passed on with the rest: a mismatch in a single byte would not identify the object it
        # belongs to.
        if chunk := response.read(1, decode_content=False):
            exchange.first_byte()
            rest = response.read(block_bytes - 1, decode_content=False)
            with self._room(1 + len(rest)) as first:
                first[:1], first[1:] = chunk, rest
                exchange.moved(len(first))
                sink.write_at(0, first)
            blocks = iter(partial(response.read, block_bytes, decode_content=False), b"")
            hand_on(blocks, sink, exchange, position=1 + len(rest))

    @contextmanager
    def _translated(self, exchange: Exchange, *, whole: bool = True) -> Iterator[None]:
        if not self._signs:
            raise no_keys()
        HERE.exchange, HERE.whole, HERE.response = exchange, whole, None
        try:
            yield
        except (MinioException, HTTPError, ParseError, ValueError) as exc:
            response = HERE.response
            if response is None or response.status < 300:
                raise error_of(exc) from exc
            # The exceptions of the library omit the region and often the status. The library has
            # read the body already.
            headers = lower(response.headers)
            raise response_error(
                response.status, response.data, headers, self._endpoint, self._bucket
            ) from exc
        finally:
            HERE.exchange = HERE.response = None


@dataclass(slots=True)
class _UploadBody:
    """A request body as the file that ``put_object`` reads in a single call."""

    _source: Source
    _exchange: Exchange
    _position: int = 0

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer at the end."""
        count = min(size, self._source.size - self._position)
        # The library accepts only bytes; this creates them without a second copy.
        buffer = io.BytesIO()
        buffer.seek(max(count - 1, 0))
        buffer.write(bytes(min(count, 1)))
        with buffer.getbuffer() as view:
            for offset in range(0, count, MIB):
                with view[offset : offset + MIB] as block:
                    self._source.readinto_at(self._position + offset, block)
                self._exchange.moved(0)
        self._position += count
        return buffer.getvalue()
