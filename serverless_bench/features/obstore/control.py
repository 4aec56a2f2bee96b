"""Small objects of the providers behind obstore, and the requests about their buckets."""

from functools import cached_property
from typing import Any, Final

import obstore

from serverless_bench.base.errors import AccessDenied, BadRequest, ConnectionLost, OperationError
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.s3_http import OpenUpload
from serverless_bench.features.obstore.client import ObstoreClient

_THERE: Final = 409
_CHANGED: Final = 412
_NO_SUCH_RANGE: Final = 416
_NOT_UNDERSTOOD: Final = frozenset({400, 501})


class CloudControl(ObstoreClient):
    """obstore, complemented by the provider's library; see ``control.ControlClient``."""

    def _open(self) -> None:
        super()._open()
        # Small objects are sent with the timeout of a read.
        self._writer = self._reader

    @cached_property
    def _requests(self) -> Any:
        """Client for requests that obstore lacks, opened at the first such request."""
        if self._unsigned is not None:
            raise AccessDenied(str(self._unsigned))
        cloud = CLOUDS.load(self._target.protocol)
        return cloud.requests(self._target, self._name, self._transfer.timeout)

    def put(  # type: ignore[override] # the condition has S3's name
        self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False
    ) -> None:
        try:
            super().put(key, source, exchange, mode="create" if if_absent else "overwrite")
        except OperationError as exc:
            if not if_absent or exc.status != _THERE:
                raise
            # Azure returns this status where S3 and Google return 412.
            raise BadRequest(str(exc), status=_CHANGED) from exc

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return the first bytes of an object, the version identifier, and the extent."""
        try:
            with self._translated(key):
                response = obstore.get(self._reader, key, options={"range": (0, length)})
                data, meta = bytes(response.bytes()), response.meta
        except OperationError as exc:
            if exc.status != _NO_SUCH_RANGE:
                raise
            # An empty object has no first byte.
            with self._translated(key):
                meta, data = obstore.head(self._reader, key), b""
        if len(data) != min(length, meta["size"]):
            # Also if the object was empty a moment ago: it would match any object with this start.
            raise ConnectionLost("the first bytes of an object do not match its size")
        version = meta[CLOUDS.load(self._target.protocol).version_field]
        if not version:
            # An object without a version cannot be deleted conditionally.
            raise BadRequest("the store sent no version of the object")
        exchange.moved(len(data))
        return data, version, f"bytes 0-{len(data) - 1}/{meta['size']}"

    def delete(  # type: ignore[override] # obstore itself returns nothing
        self, key: str, exchange: Exchange, *, etag: str = ""
    ) -> bool:
        """Delete an object; with a version from ``get_head``, only that version."""
        if not etag:
            super().delete(key, exchange)
            return False
        try:
            self._requests.delete_version(key, etag, exchange)
        except OperationError as exc:
            if exc.status in _NOT_UNDERSTOOD:
                # A condition that an S3 store does not support is dropped; these providers support
                # it, so an unconditional delete is never sent.
                raise BadRequest(str(exc)) from exc
            if exc.status == _CHANGED:
                # Azurite also returns this for a deleted object, for example after a lost response.
                self.head(key, exchange)
            raise
        return False

    def head_bucket(self, exchange: Exchange, owner: str = "") -> str:
        """Check that the bucket exists; these providers report no region."""
        self._requests.head_bucket(exchange)
        return ""

    def create_bucket(self, exchange: Exchange) -> None:
        """Create the bucket."""
        self._requests.create_bucket(exchange)

    def list_sizes(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[list[str], list[tuple[int, str]], bool]:
        """Return keys, sizes of the objects, and whether the listing continues."""
        entries, is_truncated = self._list(prefix, after)
        return (
            [entry["path"] for entry in entries],
            [(entry["size"], "") for entry in entries],
            is_truncated,
        )

    def list_uploads(
        self, prefix: str, after: OpenUpload | None, exchange: Exchange
    ) -> tuple[list[OpenUpload], OpenUpload | None]:
        """Return a page of open uploads, and the last upload before the next page."""
        page: tuple[list[OpenUpload], OpenUpload | None] = self._requests.list_uploads(
            prefix, after, exchange
        )
        return page

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        """Abort an upload."""
        self._requests.abort_multipart(key, upload_id, exchange)

    def close(self) -> None:
        if "_requests" in self.__dict__:
            self._requests.close()
