"""What S3 lists: objects, open uploads, buckets."""

from serverless_bench.lab.loopback.connection import S3Connection
from serverless_bench.lab.loopback.s3 import Element, S3Error, spelled


def list_objects(connection: S3Connection) -> None:
    """Send one page of ``ListObjectsV2``, or of its predecessor."""
    request, objects = connection.s3_request, connection.state.objects
    query = request.query
    encoding = query.get("encoding-type", "")
    prefix = query.get("prefix", "")
    second = query.get("list-type") == "2"
    marker = "start-after" if second else "marker"
    after = query.get("continuation-token", "") or query.get(marker, "")
    limit = _limit(query.get("max-keys", "1000"))
    express = connection.state.sessions.governs(request.bucket)
    keys, more = objects.page(request.bucket, prefix, after, limit, unordered=express)
    found = [objects.find(request.bucket, key, written=True) for key in keys]
    contents: list[Element] = [
        (
            "Contents",
            [
                ("Key", spelled(one.key, encoding)),
                ("LastModified", connection.state.start_stamp),
                ("ETag", one.etag),
                ("Size", str(one.size)),
                ("StorageClass", "STANDARD"),
                *(
                    [("Generation", str(one.version)), ("MetaGeneration", "1")]
                    if request.google
                    else ()
                ),
            ],
        )
        for one in found
        if one is not None
    ]
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    if more and second:
        rest.append(("NextContinuationToken", keys[-1]))
    connection.reply_document(
        "ListBucketResult",
        [
            ("Name", request.bucket),
            ("Prefix", spelled(prefix, encoding)),
            ("KeyCount", str(len(keys))),
            ("IsTruncated", str(more).lower()),
            *rest,
            *contents,
        ],
    )


def list_uploads(connection: S3Connection) -> None:
    """Send ``ListMultipartUploads``, all on one page."""
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
    """Send ``ListBuckets``: those that something was written to."""
    listed: list[Element] = [
        ("Bucket", [("Name", name), ("CreationDate", connection.state.start_stamp)])
        for name in connection.state.objects.buckets()
    ]
    connection.reply_document("ListAllMyBucketsResult", [("Buckets", listed)])


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise S3Error(400, "InvalidArgument", "max-keys is no number")
    return min(1000, int(text))
