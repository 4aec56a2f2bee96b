"""Lists of objects, of open uploads and of buckets."""

from serverless_bench.stores.loopback.answers import Element, S3Error, spelled, xml
from serverless_bench.stores.loopback.asked import Asked
from serverless_bench.stores.loopback.objects import Objects


def objects(known: Objects, asked: Asked, stamp: str) -> bytes:
    """Return one page of ``ListObjectsV2``, or of its predecessor."""
    query = asked.query
    encoding = query.get("encoding-type", "")
    prefix = query.get("prefix", "")
    second = query.get("list-type") == "2"
    marker = "start-after" if second else "marker"
    after = query.get("continuation-token", "") or query.get(marker, "")
    keys, more = known.page(asked.bucket, prefix, after, _limit(query.get("max-keys", "1000")))
    contents: list[Element] = []
    for key in keys:
        found = known.find(asked.bucket, key, written=True)
        if found is not None:
            inside: list[Element] = [
                ("Key", spelled(key, encoding)),
                ("LastModified", stamp),
                ("ETag", found.etag),
                ("Size", str(found.size)),
                ("StorageClass", "STANDARD"),
            ]
            contents.append(("Contents", inside))
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    if more and second:
        rest.append(("NextContinuationToken", keys[-1]))
    return xml(
        "ListBucketResult",
        [
            ("Name", asked.bucket),
            ("Prefix", spelled(prefix, encoding)),
            ("KeyCount", str(len(keys))),
            ("IsTruncated", str(more).lower()),
            *rest,
            *contents,
        ],
    )


def uploads(known: Objects, asked: Asked, stamp: str) -> bytes:
    """Return ``ListMultipartUploads``, all on one page."""
    encoding = asked.query.get("encoding-type", "")
    listed: list[Element] = [
        (
            "Upload",
            [
                ("Key", spelled(upload.key, encoding)),
                ("UploadId", upload.upload_id),
                ("Initiated", stamp),
            ],
        )
        for upload in known.uploads(asked.bucket, asked.query.get("prefix", ""))
    ]
    rest: list[Element] = [("EncodingType", encoding)] if encoding else []
    inside: list[Element] = [("Bucket", asked.bucket), ("IsTruncated", "false"), *rest, *listed]
    return xml("ListMultipartUploadsResult", inside)


def buckets(known: Objects, stamp: str) -> bytes:
    """Return ``ListBuckets``: those that something was written to."""
    listed: list[Element] = [
        ("Bucket", [("Name", name), ("CreationDate", stamp)]) for name in known.buckets()
    ]
    return xml("ListAllMyBucketsResult", [("Buckets", listed)])


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise S3Error(400, "InvalidArgument", "max-keys is no number")
    return min(1000, int(text))
