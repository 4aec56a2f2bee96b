"""Requests about uploads in parts."""

from collections.abc import Callable, Mapping
from typing import Final

from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import MAX_PARTS
from serverless_bench.stores.loopback.answers import S3Error, parse, texts, xml
from serverless_bench.stores.loopback.faulty import FaultyConnection
from serverless_bench.stores.loopback.inspector import TELLING_BYTES
from serverless_bench.stores.loopback.object_operations import check_conditions, commit
from serverless_bench.stores.loopback.objects import Content
from serverless_bench.stores.loopback.parts import Upload, etag_of, place


def _create(connection: FaultyConnection) -> None:
    bucket, key = connection.asked.bucket, connection.asked.key
    upload_id = connection.server.objects.begin_upload(bucket, key)
    inside = [("Bucket", bucket), ("Key", key), ("UploadId", upload_id)]
    connection.say(xml("InitiateMultipartUploadResult", inside))


def _upload(connection: FaultyConnection) -> None:
    upload, number = _open(connection), connection.asked.part
    if number is None or not 1 <= number <= MAX_PARTS:
        raise S3Error(400, "InvalidArgument", "a part's number is between 1 and 10,000")
    verdict = connection.receive_upload(offset=None)
    foreign = connection.server.looks and verdict.generation is None
    if foreign and verdict.size >= TELLING_BYTES:
        connection.spoiled(verdict, "these bytes are no part of the object")
    upload.parts[number] = verdict
    connection.reply(200, headers={"ETag": etag_of(verdict)})


def _complete(connection: FaultyConnection) -> None:
    upload, asked = _open(connection), connection.asked
    check_conditions(connection)
    listed = [
        (int(number) if number.isdecimal() else 0, etag)
        for number, etag in texts(parse(connection.read_document()), "Part", "PartNumber", "ETag")
    ]
    placed = place(asked.key, upload.parts, listed, looks=connection.server.looks)
    declared = declared_size(asked.key)
    if declared is not None and declared != placed.size:
        message = f"the parts have {placed.size} bytes, the key declares {declared}"
        raise S3Error(400, "BadDigest", message)
    content = Content(
        key=asked.key,
        size=placed.size,
        generation=placed.generation,
        verbatim=placed.verbatim,
    )
    commit(connection, content)
    connection.server.objects.end_upload(asked.bucket, upload.upload_id)
    inside = [("Bucket", asked.bucket), ("Key", asked.key), ("ETag", content.etag)]
    connection.say(xml("CompleteMultipartUploadResult", inside))


def _abort(connection: FaultyConnection) -> None:
    upload = _open(connection)
    connection.server.objects.end_upload(connection.asked.bucket, upload.upload_id)
    connection.reply(204)


def _open(connection: FaultyConnection) -> Upload:
    asked = connection.asked
    return connection.server.objects.upload(asked.bucket, asked.key, asked.query["uploadId"])


PART_OPERATIONS: Final[Mapping[str, Callable[[FaultyConnection], None]]] = {
    "abort_multipart": _abort,
    "complete_multipart": _complete,
    "create_multipart": _create,
    "upload_part": _upload,
}
"""By the words of ``Asked.operation``."""
