"""A client that fails on purpose: a script of errors per request, then success."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from serverless_bench.base.errors import OperationError
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.rundir.record import Shown
from tests.house.features import features


class FlakyClient:
    """Keeps objects; raises each scripted error once, after ``moved`` bytes."""

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="exact",
        progress="wire",
        shows=frozenset({Shown.FIRST_BYTE, Shown.ACKNOWLEDGED}),
        signing="none",
        checksum="none",
    )

    def __init__(self, script: Mapping[str, Sequence[Exception | None]] | None = None) -> None:
        self.script = {request: list(errors) for request, errors in (script or {}).items()}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[int, bytes] = {}
        self.moves: list[tuple[str | None, str | None]] = []
        self.calls: list[str] = []
        self.moved_before_error = 10

    def _maybe_fail(self, request: str, exchange: Exchange) -> None:
        self.calls.append(request)
        errors = self.script.get(request)
        error = errors.pop(0) if errors else None
        if error is not None:
            exchange.moved(self.moved_before_error)
            if isinstance(error, OperationError) and error.status:
                exchange.answered(error.status, {"x-amz-request-id": "failed"})
            raise error

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        self._maybe_fail("put", exchange)
        self.objects[key] = _taken(source, exchange)
        exchange.answered(200, {"x-amz-request-id": "good"})

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        self._maybe_fail("get", exchange)
        data = self.objects[key][offset : None if length is None else offset + length]
        exchange.first_byte()
        exchange.moved(len(data))
        sink.write_at(0, memoryview(data))

    def head(self, key: str, exchange: Exchange) -> int:
        self._maybe_fail("head", exchange)
        return len(self.objects[key])

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        self._maybe_fail("list", exchange)
        return sorted(k for k in self.objects if k.startswith(prefix) and k > after), False

    def delete(self, key: str, exchange: Exchange) -> None:
        self._maybe_fail("delete", exchange)
        self.objects.pop(key, None)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        self._maybe_fail("delete_many", exchange)
        for key in keys:
            self.objects.pop(key, None)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        self._maybe_fail("copy", exchange)
        self.objects[key] = self.objects[source]

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        self._maybe_fail("create_multipart", exchange)
        return "upload"

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        self._maybe_fail("upload_part", exchange)
        self.parts[number] = _taken(source, exchange)
        return f"etag-{number}"

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        self._maybe_fail("complete_multipart", exchange)
        assert list(etags) == [f"etag-{number}" for number in sorted(self.parts)]
        self.objects[key] = b"".join(self.parts[number] for number in sorted(self.parts))

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        self._maybe_fail("abort_multipart", exchange)
        self.parts.clear()

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        self.moves.append((region, endpoint_url))

    def close(self) -> None:
        self.calls.append("close")


def _taken(source: Source, exchange: Exchange) -> bytes:
    data = bytearray(source.size)
    source.readinto_at(0, memoryview(data))
    exchange.moved(len(data))
    exchange.sent()
    return bytes(data)


def open_barrier(client: FlakyClient, prefix: str) -> None:
    """Let the functions of the run ``r`` begin, if there is a barrier."""
    if "barrier" in features():
        from serverless_bench.features.barrier.policy import start_key

        client.objects[start_key(prefix, "r")] = b"+"
