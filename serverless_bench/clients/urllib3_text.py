"""Responses of urllib3 that are no objects: read to a bound, and in time."""

from collections.abc import Iterator
from typing import Any

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.library import most_text
from serverless_bench.errors import BadResponse
from serverless_bench.units import KIB


def read_text(response: Any, exchange: Exchange | None) -> Iterator[bytes]:  # noqa: ANN401
    """Yield the body of a response as it comes, not unpacked.

    Parameters
    ----------
    response
        Of urllib3 or botocore's own; nothing of its body has been read.
    exchange
        Told of each piece, so that the deadline is minded.

    Raises
    ------
    BadResponse
        If it is longer than anything that S3 sends.
    """
    left = most_text(is_long=True)
    while piece := response.read1(min(left, 64 * KIB), decode_content=False):
        yield piece
        if exchange is not None:
            exchange.moved(0)
        left -= len(piece)
        if not left:
            response.close()
            raise BadResponse("the store's response is too long", status=response.status)
