"""Small objects of clouds that obstore reaches, and the requests about their buckets."""

from functools import cached_property
from typing import Final

import obstore

from serverless_bench.clients.base import Exchange, Source
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.clouds.azure import AzureRequests
from serverless_bench.clients.clouds.google import GoogleRequests
from serverless_bench.clients.listings import OpenUpload
from serverless_bench.clients.obstore import ObstoreClient
from serverless_bench.errors import AccessDenied, BadRequest, ConnectionLost, OperationError

_THERE: Final = 409
_CHANGED: Final = 412
_NO_SUCH_RANGE: Final = 416
_NOT_UNDERSTOOD: Final = frozenset({400, 501})


class CloudControl(ObstoreClient):
    """obstore, and beside it the provider's own library; see ``control.ControlClient``."""

    def _open(self) -> None:
        super()._open()
        # What is small is sent in the time that a read may take.
        self._writer = self._reader

    @cached_property
    def _requests(self) -> AzureRequests | GoogleRequests:
        """What obstore does not do, opened when the first such request is made."""
        if self._unsigned is not None:
            raise AccessDenied(str(self._unsigned))
        cloud = CLOUDS[self._target.protocol]
        return cloud.requests(self._target, self._name, self._transfer.timeout)

    def put(  # type: ignore[override] # the condition has S3's name
        self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False
    ) -> None:
        try:
            super().put(key, source, exchange, mode="create" if if_absent else "overwrite")
        except OperationError as exc:
            if not if_absent or exc.status != _THERE:
                raise
            # Azure's status for what S3 and Google refuse with 412.
            raise BadRequest(str(exc), status=_CHANGED) from exc

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return an object's first bytes, what tells its versions apart, and its extent."""
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
            # Of what was empty a moment ago, too: it would look like anything that begins so.
            raise ConnectionLost("an object's first bytes are not those of its size")
        version = meta[CLOUDS[self._target.protocol].version_field]
        if not version:
            # What has no version cannot be deleted on a condition.
            raise BadRequest("the store says no version of the object")
        exchange.moved(len(data))
        return data, version, f"bytes 0-{len(data) - 1}/{meta['size']}"

    def delete(  # type: ignore[override] # obstore itself returns nothing
        self, key: str, exchange: Exchange, *, etag: str = ""
    ) -> bool:
        """Delete one object; with what ``get_head`` says of a version, only that one."""
        if not etag:
            super().delete(key, exchange)
            return False
        try:
            self._requests.delete_version(key, etag, exchange)
        except OperationError as exc:
            if exc.status in _NOT_UNDERSTOOD:
                # An S3 store that does not know the condition is asked without one; these
                # clouds know it, so that nothing is deleted without.
                raise BadRequest(str(exc)) from exc
            if exc.status == _CHANGED:
                # Azurite says so of what is gone, too: of a request whose response was lost.
                self.head(key, exchange)
            raise
        return False

    def head_bucket(self, exchange: Exchange, owner: str = "") -> str:
        """Ask whether the bucket is there; these clouds say no region."""
        self._requests.head_bucket(exchange)
        return ""

    def create_bucket(self, exchange: Exchange) -> None:
        """Make the bucket."""
        self._requests.create_bucket(exchange)

    def list_sizes(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[list[str], list[int], bool]:
        """Return keys, their objects' sizes, and whether there are more."""
        found, more = self._list(prefix, after)
        return [entry["path"] for entry in found], [entry["size"] for entry in found], more

    def list_uploads(
        self, prefix: str, after: OpenUpload | None, exchange: Exchange
    ) -> tuple[list[OpenUpload], OpenUpload | None]:
        """Return a page of open uploads, and after which one the next page begins."""
        return self._requests.list_uploads(prefix, after, exchange)

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        """Give up one of these uploads."""
        self._requests.abort_multipart(key, upload_id, exchange)

    def close(self) -> None:
        if "_requests" in self.__dict__:
            self._requests.close()
