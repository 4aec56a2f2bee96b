"""Handlers of the S3 requests: buckets, objects, multipart uploads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from serverless_bench.base.clock import sleep, utc_stamp, wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.loopback.bodies import TELLING_BYTES
from serverless_bench.features.loopback.connection import REFUSALS, S3Connection
from serverless_bench.features.loopback.faults import FaultKind, PlannedFault
from serverless_bench.features.loopback.listings import (
    list_buckets,
    list_objects,
    list_uploads,
    list_versions,
)
from serverless_bench.features.loopback.objects import (
    ABSENT,
    NO_VERSION,
    StoredObject,
    Upload,
    assemble,
    etag_of,
)
from serverless_bench.features.loopback.s3 import (
    IF_SOURCE,
    Element,
    S3Error,
    http_date,
    parse_xml,
    texts,
)
from serverless_bench.job.keys import declared_size
from serverless_bench.job.target import MAX_PARTS

_RACE_S: Final = 0.001
"""Time between comparison and write if conditions are racy."""


def _create_session(connection: S3Connection) -> None:
    session = connection.state.sessions.create(connection.s3_request.bucket, wall_ns())
    credentials: list[Element] = [
        ("SessionToken", session.token),
        ("SecretAccessKey", session.secret_key),
        ("AccessKeyId", session.access_key),
        ("Expiration", utc_stamp(session.end_ns, separators=True)),
    ]
    connection.reply_document("CreateSessionResult", [("Credentials", credentials)])


def _delete_objects(connection: S3Connection) -> None:
    root = parse_xml(connection.read_document())
    keys = [key for (key,) in texts(root, "Object", "Key")]
    connection.logged.keys = keys
    for key in keys:
        connection.state.objects.delete(connection.s3_request.bucket, key)
    quiet = (root.findtext("{*}Quiet") or "").lower() == "true"
    deleted = [] if quiet else [("Deleted", [("Key", key)]) for key in keys]
    connection.reply_document("DeleteResult", deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GetResponse:
    """Response to a GET."""

    content: StoredObject
    first: int
    end: int
    total: int
    """Size of the object, as announced in the response."""
    stop: int
    """Offset at which the connection is closed; ``end`` if it stays open."""
    flips: tuple[tuple[int, int], ...] = ()


def _get(connection: S3Connection) -> None:
    content, request, fault = _find(connection), connection.s3_request, connection.fault
    extent = request.extent(content.size)
    first, end = extent or (0, content.size)
    plan = _GetResponse(content=content, first=first, end=end, total=content.size, stop=end)
    if fault:
        plan = _apply_fault(connection, fault, plan, ranged=extent is not None)
    logged = connection.logged
    logged.size, logged.offset, logged.length = plan.total, first, plan.end - first
    headers = _headers(connection, plan.content, plan.end - first)
    if extent:
        headers["Content-Range"] = f"bytes {first}-{plan.end - 1}/{plan.total}"
    connection.drain_body()
    connection.send_head(206 if extent else 200, headers)
    _send(connection, plan)
    if fault and plan.stop < plan.end:
        connection.inject(fault, sent_bytes=plan.stop - first)
        connection.hang_up(reset=fault.kind is FaultKind.RESET_GET)


def _apply_fault(
    connection: S3Connection, fault: PlannedFault, plan: _GetResponse, *, ranged: bool
) -> _GetResponse:
    """Return a faulty download; faults that close the connection are injected at the end."""
    first, size = plan.first, plan.end - plan.first
    match fault.kind:
        case FaultKind.SHORT:
            # A range keeps at least one byte: a 206 response cannot be empty.
            end = first + (fault.cut(size) or int(ranged))
            connection.inject(fault, ends_at=end)
            return replace(plan, end=end, total=end, stop=end)
        case FaultKind.STALE:
            other = plan.content.generation ^ 1
            connection.inject(fault, generation=other)
            return replace(plan, content=replace(plan.content, generation=other))
        case FaultKind.FLIP:
            flips = tuple(fault.bits(connection.state.settings.flip_bits, first, plan.end))
            connection.inject(fault, flips=flips)
            return replace(plan, flips=flips)
        case FaultKind.TRUNCATE | FaultKind.RESET_GET:
            return replace(plan, stop=first + fault.cut(size))
        case _:
            return plan


def _send(connection: S3Connection, plan: _GetResponse) -> None:
    offset = plan.first
    try:
        while offset < plan.stop:
            block = connection.buffer[: plan.stop - offset]
            plan.content.readinto_at(offset, block)
            for at, bit in plan.flips:
                if offset <= at < offset + len(block):
                    block[at - offset] ^= 1 << bit
            connection.throttle(len(block), upload=False)
            connection.send_block(block)
            offset += len(block)
    finally:
        connection.state.counters.add(out_bytes=offset - plan.first)


def _head(connection: S3Connection) -> None:
    content = _find(connection)
    connection.logged.size = content.size
    connection.reply(200, headers=_headers(connection, content, content.size))


def _delete(connection: S3Connection) -> None:
    request, objects, fault = connection.s3_request, connection.state.objects, connection.fault
    if request.google:
        # S3 also deletes objects that do not exist.
        _find(connection)
    required = _required_version(connection)
    if fault and fault.kind is FaultKind.DELETE_IGNORED:
        connection.inject(fault)
    elif not objects.delete(request.bucket, request.key, if_version=required):
        raise _precondition_failed()
    connection.reply(204)


def _copy(connection: S3Connection) -> None:
    """Copy an object to another key."""
    request, objects = connection.s3_request, connection.state.objects
    source = objects.find(*request.copy_source())
    if source is None:
        raise S3Error(*REFUSALS[FaultKind.MISSING])
    if request.headers.get(IF_SOURCE, source.etag) != source.etag:
        raise _precondition_failed()
    headers = _commit(connection, source.copy_to(request.key), _required_version(connection))
    inside = [("ETag", source.etag), ("LastModified", connection.state.start_stamp)]
    connection.reply_document("CopyObjectResult", inside, headers)


def _put(connection: S3Connection) -> None:
    key, declared = connection.s3_request.key, declared_size(connection.s3_request.key)
    required = _required_version(connection)
    check = connection.receive_upload(offset=0)
    if declared is not None and check.size != declared:
        message = f"{check.size} bytes were received, the key declares {declared}"
        connection.reject(check, message)
    foreign = connection.state.settings.verifies and check.generation is None
    if foreign and check.verbatim is None:
        connection.reject(check, "neither the keystream of the key nor short")
    content = StoredObject(
        key=key,
        size=check.size,
        generation=check.generation or 0,
        verbatim=check.verbatim if declared is None else None,
    )
    connection.reply(200, headers=_commit(connection, content, required))


def _required_version(connection: S3Connection) -> int | None:
    """Return the version that the request requires of the object; None for any.

    Raises
    ------
    S3Error
        If the object already has a different version.
    """
    request, objects = connection.s3_request, connection.state.objects
    required = request.required_version()
    if (wanted := request.headers.get("if-match")) is not None:
        # Clients also delete objects that can be read although they were never written.
        written = request.method != "DELETE"
        current = objects.find(request.bucket, request.key, written=written)
        required = current.version if current is not None and current.etag == wanted else NO_VERSION
    elif request.headers.get("if-none-match") == "*":
        required = ABSENT
    if required is not None and not objects.has_version(request.bucket, request.key, required):
        raise _precondition_failed()
    return required


def _precondition_failed() -> S3Error:
    return S3Error(412, "PreconditionFailed", "the object exists, or has another version")


def _commit(
    connection: S3Connection, content: StoredObject, required: int | None
) -> dict[str, str]:
    """Record that an object was written, and return the headers that identify it.

    Raises
    ------
    S3Error
        If the request is conditional and another request was faster.
    """
    bucket, objects = connection.s3_request.bucket, connection.state.objects
    if required is not None and connection.state.settings.racy_conditions:
        # This race is deliberate: others may write between the comparison and the write.
        if not objects.has_version(bucket, content.key, required):
            raise _precondition_failed()
        sleep(_RACE_S)
        required = None
    written = objects.put(bucket, content, if_version=required)
    if written is None:
        raise _precondition_failed()
    return _identity(connection, written)


def _identity(connection: S3Connection, content: StoredObject) -> dict[str, str]:
    headers = {"ETag": content.etag}
    if connection.s3_request.google:
        headers["x-goog-generation"] = str(content.version)
        # Generation of the metadata, which never changes here.
        headers["x-goog-metageneration"] = "1"
        headers["x-goog-stored-content-length"] = str(content.size)
    return headers


def _find(connection: S3Connection) -> StoredObject:
    """Return the object of the request.

    Raises
    ------
    S3Error
        If it does not exist, or does not meet Google's condition.
    """
    request = connection.s3_request
    content = connection.state.objects.find(request.bucket, request.key)
    if content is None:
        raise S3Error(*REFUSALS[FaultKind.MISSING])
    if request.required_version() not in {None, content.version}:
        raise _precondition_failed()
    if not request.google and request.method != "DELETE":
        if request.headers.get("if-match", content.etag) != content.etag:
            raise _precondition_failed()
        if request.headers.get("if-none-match") == content.etag:
            raise S3Error(304, "NotModified", "")
    return content


def _headers(connection: S3Connection, content: StoredObject, length: int) -> dict[str, str]:
    return {
        **_identity(connection, content),
        "Content-Length": str(length),
        "Last-Modified": (
            connection.state.start_date
            if content.written_ns is None
            else http_date(content.written_ns / NS_PER_S)
        ),
        "Accept-Ranges": "bytes",
        "Content-Type": "binary/octet-stream",
    }


def _create_multipart(connection: S3Connection) -> None:
    bucket, key = connection.s3_request.bucket, connection.s3_request.key
    upload_id = connection.state.objects.begin_upload(bucket, key)
    inside = [("Bucket", bucket), ("Key", key), ("UploadId", upload_id)]
    connection.reply_document("InitiateMultipartUploadResult", inside)


def _upload_part(connection: S3Connection) -> None:
    upload, part_number = _open_upload(connection), connection.s3_request.part
    if part_number is None or not 1 <= part_number <= MAX_PARTS:
        raise S3Error(400, "InvalidArgument", "a part number has to be between 1 and 10,000")
    check = connection.receive_upload(offset=None)
    foreign = connection.state.settings.verifies and check.generation is None
    kept = check.verbatim is not None and declared_size(upload.key) is None
    if foreign and check.size >= TELLING_BYTES and not kept:
        connection.reject(check, "these bytes are not part of the object")
    upload.parts[part_number] = check
    connection.reply(200, headers={"ETag": etag_of(check)})


def _complete_multipart(connection: S3Connection) -> None:
    upload, request = _open_upload(connection), connection.s3_request
    required = _required_version(connection)
    listed = [
        (int(number) if number.isdecimal() else 0, etag)
        for number, etag in texts(
            parse_xml(connection.read_document()), "Part", "PartNumber", "ETag"
        )
    ]
    numbers = [number for number, _ in listed]
    in_a_row = [*range(1, len(numbers) + 1)]
    if connection.state.sessions.governs(request.bucket) and numbers != in_a_row:
        raise S3Error(400, "InvalidPartOrder", "a directory bucket needs parts 1, 2, 3 and so on")
    with upload.ending:
        _open_upload(connection)
        _finish(connection, upload, required, listed)


def _finish(
    connection: S3Connection,
    upload: Upload,
    required: int | None,
    listed: Sequence[tuple[int, str]],
) -> None:
    """Combine the listed parts of an upload."""
    request = connection.s3_request
    content = assemble(
        request.key, upload.parts, listed, verifies=connection.state.settings.verifies
    )
    declared = declared_size(request.key)
    if declared is not None and declared != content.size:
        raise S3Error(
            400, "BadDigest", f"the parts have {content.size} bytes, the key declares {declared}"
        )
    headers = _commit(connection, content, required)
    connection.state.objects.end_upload(request.bucket, upload.upload_id)
    inside = [("Bucket", request.bucket), ("Key", request.key), ("ETag", content.etag)]
    connection.reply_document("CompleteMultipartUploadResult", inside, headers)


def _abort_multipart(connection: S3Connection) -> None:
    with _open_upload(connection).ending:
        upload = _open_upload(connection)
        connection.state.objects.end_upload(connection.s3_request.bucket, upload.upload_id)
    connection.reply(204)


def _open_upload(connection: S3Connection) -> Upload:
    request = connection.s3_request
    return connection.state.objects.upload(request.bucket, request.key, request.query["uploadId"])


OPERATIONS: Final[Mapping[str, Callable[[S3Connection], None]]] = {
    "abort_multipart": _abort_multipart,
    "complete_multipart": _complete_multipart,
    "copy": _copy,
    "create_bucket": lambda connection: connection.reply(
        200, headers={"Location": f"/{connection.s3_request.bucket}"}
    ),
    "create_multipart": _create_multipart,
    "create_session": _create_session,
    "delete": _delete,
    "delete_bucket": lambda connection: connection.reply(204),
    "delete_objects": _delete_objects,
    "get": _get,
    # An empty location means us-east-1 (Amazon S3 API reference, "GetBucketLocation").
    "get_location": lambda connection: connection.reply_document("LocationConstraint", []),
    "head": _head,
    "head_bucket": lambda connection: connection.reply(
        200, headers={"x-amz-bucket-region": "us-east-1"}
    ),
    "list_buckets": list_buckets,
    "list_objects": list_objects,
    "list_uploads": list_uploads,
    "list_versions": list_versions,
    "put": _put,
    "upload_part": _upload_part,
}
"""Handlers by the values of ``S3Request.operation``."""
