"""Cleaning up far from the store: a request takes a round trip, so many are in flight."""

import threading

from serverless_bench.driver.cleanup import THREADS, delete
from serverless_bench.job.target import Target
from tests.commands.processes import PATIENCE_S
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.servers import KEYS, credentials

TOGETHER = 64
HEAD_BYTES, SIZE = 256, 300


def test_as_many_objects_are_looked_at_as_100_ms_need() -> None:
    together = threading.Barrier(TOGETHER)

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        if "?" in exchange.path:
            # A list of open uploads, which this store has not.
            exchange.say(405)
        elif exchange.method == "GET":
            # No request is answered before this number of requests has arrived.
            try:
                together.wait(PATIENCE_S)
            except threading.BrokenBarrierError:
                exchange.say(404)
                return True
            about = {"Content-Range": f"bytes 0-{HEAD_BYTES - 1}/{SIZE}", "ETag": '"etag"'}
            exchange.say(206, exchange.content()[:HEAD_BYTES], about)
        else:
            exchange.say(200 if exchange.method == "HEAD" else 204)
        return True

    keys = [f"sbench/{number:032x}.{SIZE}" for number in range(2 * TOGETHER)]
    with FaultServer([answer] * 9 * TOGETHER) as store, credentials(KEYS):
        deleted = delete(Target(bucket="bucket", endpoint_url=store.endpoint_url), keys)
    assert (deleted.objects, deleted.foreign, deleted.failed) == (len(keys), [], [])
    assert THREADS == TOGETHER
