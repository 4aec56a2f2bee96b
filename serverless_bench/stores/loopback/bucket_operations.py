"""Requests about buckets: every name is one, and none can be taken away."""

from collections.abc import Callable, Mapping
from typing import Final

from serverless_bench.stores.loopback import listing
from serverless_bench.stores.loopback.answers import parse, texts, xml
from serverless_bench.stores.loopback.faulty import FaultyConnection


def _head(connection: FaultyConnection) -> None:
    connection.reply(200, headers={"x-amz-bucket-region": "us-east-1"})


def _create(connection: FaultyConnection) -> None:
    connection.reply(200, headers={"Location": f"/{connection.asked.bucket}"})


def _delete(connection: FaultyConnection) -> None:
    connection.reply(204)


def _location(connection: FaultyConnection) -> None:
    # Empty stands for us-east-1 (Amazon S3 API reference, "GetBucketLocation").
    connection.say(xml("LocationConstraint", []))


def _delete_objects(connection: FaultyConnection) -> None:
    root = parse(connection.read_document())
    keys = [key for (key,) in texts(root, "Object", "Key")]
    connection.sight.keys = keys
    for key in keys:
        connection.server.objects.delete(connection.asked.bucket, key)
    quiet = (root.findtext("{*}Quiet") or "").lower() == "true"
    told = [] if quiet else [("Deleted", [("Key", key)]) for key in keys]
    connection.say(xml("DeleteResult", told))


def _list_buckets(connection: FaultyConnection) -> None:
    server = connection.server
    connection.say(listing.buckets(server.objects, server.start_stamp))


def _list_objects(connection: FaultyConnection) -> None:
    server = connection.server
    connection.say(listing.objects(server.objects, connection.asked, server.start_stamp))


def _list_uploads(connection: FaultyConnection) -> None:
    server = connection.server
    connection.say(listing.uploads(server.objects, connection.asked, server.start_stamp))


BUCKET_OPERATIONS: Final[Mapping[str, Callable[[FaultyConnection], None]]] = {
    "create_bucket": _create,
    "delete_bucket": _delete,
    "delete_objects": _delete_objects,
    "get_location": _location,
    "head_bucket": _head,
    "list_buckets": _list_buckets,
    "list_objects": _list_objects,
    "list_uploads": _list_uploads,
}
"""By the words of ``Asked.operation``."""
