"""Listings of objects, open uploads and buckets."""

from serverless_bench.features.loopback.connection import S3Connection
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.s3 import Element, S3Error, spelled


def list_objects(connection: S3Connection) -> None:
    """Send a page of ``ListObjectsV2``, or of ``ListObjects``."""
    request, objects = connection.s3_request, connection.state.objects
    query = request.query
    encoding = query.get("encoding-type", "")
    prefix = query.get("prefix", "")
    is_version_2 = query.get("list-type") == "2"
    marker = "start-after" if is_version_2 else "marker"
    after = query.get("continuation-token", "") or query.get(marker, "")
    limit = _limit(query.get("max-keys", "1000"))
    express = connection.state.sessions.governs(request.bucket)
    keys, is_truncated = objects.page(request.bucket, prefix, after, limit, unordered=express)
    last = keys[-1] if keys else ""
    if (fault := connection.fault) and fault.kind is FaultKind.LIST_MISSING and keys:
        connection.inject(fault)
        del keys[fault.rng.randrange(len(keys))]
    listed = [objects.find(request.bucket, key, written=True) for key in keys]
    contents: list[Element] = [
        (
            "Contents",
            [
                ("Key", spelled(stored.key, encoding)),
                ("LastModified", connection.state.start_stamp),
                ("ETag", stored.etag),
                ("Size", str(stored.size)),
                ("StorageClass", "STANDARD"),
                *(
                    [("Generation", str(stored.version)), ("MetaGeneration", "1")]
                    if request.google
                    else ()
                ),
            ],
        )
        for stored in listed
        if stored is not None
    ]
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    if is_truncated and is_version_2:
        rest.append(("NextContinuationToken", last))
    connection.reply_document(
        "ListBucketResult",
        [
            ("Name", request.bucket),
            ("Prefix", spelled(prefix, encoding)),
            ("KeyCount", str(len(keys))),
            ("IsTruncated", str(is_truncated).lower()),
            *rest,
            *contents,
        ],
    )


def list_versions(connection: S3Connection) -> None:
    """Send a page of ``ListObjectVersions``: each object has one version."""
    request, objects = connection.s3_request, connection.state.objects
    query, encoding = request.query, request.query.get("encoding-type", "")
    prefix, limit = query.get("prefix", ""), _limit(query.get("max-keys", "1000"))
    keys, is_truncated = objects.page(request.bucket, prefix, query.get("key-marker", ""), limit)
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    if is_truncated:
        rest += [("NextKeyMarker", spelled(keys[-1], encoding)), ("NextVersionIdMarker", "null")]
    listed = [objects.find(request.bucket, key, written=True) for key in keys]
    versions: list[Element] = [
        (
            "Version",
            [
                ("Key", spelled(stored.key, encoding)),
                ("VersionId", "null"),
                ("IsLatest", "true"),
                ("Size", str(stored.size)),
            ],
        )
        for stored in listed
        if stored is not None
    ]
    inside: list[Element] = [("IsTruncated", str(is_truncated).lower()), *rest, *versions]
    connection.reply_document("ListVersionsResult", inside)


def list_uploads(connection: S3Connection) -> None:
    """Send ``ListMultipartUploads`` as a single page."""
    request, objects = connection.s3_request, connection.state.objects
    encoding = request.query.get("encoding-type", "")
    listed: list[Element] = [
        (
            "Upload",
            [
                ("Key", spelled(upload.key, encoding)),
                ("UploadId", upload.upload_id),
                ("Initiated", connection.state.start_stamp),
            ],
        )
        for upload in objects.uploads(request.bucket, request.query.get("prefix", ""))
    ]
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    inside: list[Element] = [("Bucket", request.bucket), ("IsTruncated", "false"), *rest, *listed]
    connection.reply_document("ListMultipartUploadsResult", inside)


def list_buckets(connection: S3Connection) -> None:
    """Send ``ListBuckets``, with the buckets that have been written to."""
    listed: list[Element] = [
        ("Bucket", [("Name", name), ("CreationDate", connection.state.start_stamp)])
        for name in connection.state.objects.buckets()
    ]
    connection.reply_document("ListAllMyBucketsResult", [("Buckets", listed)])


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise S3Error(400, "InvalidArgument", "max-keys is not a number")
    return min(1000, int(text))
