"""From a request to the operation that answers it."""

import json
from collections.abc import Callable, Mapping
from typing import Final

from serverless_bench.stores.loopback.answers import S3Error
from serverless_bench.stores.loopback.asked import STATISTICS
from serverless_bench.stores.loopback.bucket_operations import BUCKET_OPERATIONS
from serverless_bench.stores.loopback.faulty import FaultyConnection
from serverless_bench.stores.loopback.object_operations import OBJECT_OPERATIONS
from serverless_bench.stores.loopback.part_operations import PART_OPERATIONS

_OPERATIONS: Final[Mapping[str, Callable[[FaultyConnection], None]]] = {
    **BUCKET_OPERATIONS,
    **OBJECT_OPERATIONS,
    **PART_OPERATIONS,
}


class Handler(FaultyConnection):
    """Answers the requests of one connection."""

    def serve(self) -> None:
        """Answer one request."""
        asked = self.begin()
        if asked.path == STATISTICS:
            self.reply(200, json.dumps(self.server.statistics()).encode())
            return
        self.be_seen()
        try:
            name = asked.operation()
            self.sight.operation = name
            self.server.counts.request(name)
            self.meet_limits(name)
            self.meet_fault(name)
            _OPERATIONS[name](self)
        except S3Error as exc:
            self.refuse(exc)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = serve  # noqa: N815 - stdlib's names
