"""The part of the clients' contract that is about conditional writes."""

from typing import cast

import pytest

from serverless_bench.clients.base import Client, ClientInfo, ConditionalClient
from serverless_bench.errors import NotFound, OperationError
from serverless_bench.job.target import Target
from serverless_bench.testing.client_parts import (
    ClientFixtures,
    Collector,
    RangeOf,
    check_status,
    new_meter,
)

SIZE = 100


class ConditionContract(ClientFixtures):
    """Skipped for a client that does not declare them, or a store without ``conditions``."""

    def test_a_write_takes_effect_only_if_its_condition_holds(
        self, client: Client, declared: ClientInfo, target: Target
    ) -> None:
        if not declared.conditional or "conditions" in self.lacks(target.client):
            pytest.skip("no conditional writes here")
        conditional = cast("ConditionalClient", client)
        # Its end declares no size: what stands there is the test's own.
        key = f"{target.prefix}register"

        def content(name: str) -> bytes:
            data = bytearray(SIZE)
            RangeOf(name, 0, SIZE).readinto_at(0, memoryview(data))
            return bytes(data)

        def put(name: str, etag: str | None) -> None:
            conditional.put_if(key, RangeOf(name, 0, SIZE), new_meter(), etag=etag)

        def get() -> tuple[bytes, str]:
            sink, meter = Collector(), new_meter()
            etag = conditional.get_tagged(key, sink, meter)
            check_status(client, meter.status, 200)
            assert meter.bytes == SIZE
            return sink.joined(), etag

        with pytest.raises(NotFound):
            conditional.get_tagged(key, Collector(), new_meter())
        put("first", None)
        first, etag = get()
        assert first == content("first")
        assert etag
        put("second", etag)
        second, newer = get()
        assert second == content("second")
        assert newer != etag
        for refused in (None, etag):
            with pytest.raises(OperationError) as caught:
                put("third", refused)
            assert caught.value.status == 412
        assert get() == (second, newer)
