"""The guarantees: what each says, who relies on it, and the check."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from serverless_bench.base.errors import check_known
from serverless_bench.features.qualify import objects, reads, uploads, writes
from serverless_bench.features.qualify.trial import StoreTrial


class Guarantee(NamedTuple):
    """A property of a store."""

    name: str
    sentence: str
    users: str
    """Programs that rely on it, separated by commas."""
    check: Callable[[StoreTrial], int | None]
    """Tries it, and returns how often if more than once."""
    most: int
    """Largest number of trials: it bounds the cost of a run."""


_TABLES: Final = "Delta Lake, icechunk, Iceberg, Lance"
_ALL: Final = f"{_TABLES}, Kopia, restic, SlateDB, Terraform"

GUARANTEES: Final = (
    Guarantee(
        "create-put",
        "Of PUTs with If-None-Match: * for a missing key, one succeeds.",
        f"{_TABLES}, SlateDB, Terraform",
        partial(writes.created, way=writes.by_put),
        200,
    ),
    Guarantee(
        "replace-put",
        "Of PUTs with If-Match for a version, one succeeds, and reads are linearizable.",
        "icechunk, Iceberg",
        partial(writes.replaced, way=writes.by_put),
        60,
    ),
    Guarantee(
        "create-copy",
        "Of CopyObjects with If-None-Match: * for a missing key, one succeeds.",
        "renames by copies",
        partial(writes.created, way=writes.by_copy),
        30,
    ),
    Guarantee(
        "replace-copy",
        "Of CopyObjects with If-Match for a version, one succeeds.",
        "renames by copies",
        partial(writes.replaced, way=writes.by_copy),
        8,
    ),
    Guarantee(
        "create-multipart",
        "Of CompleteMultipartUploads with If-None-Match: * for a missing key, one succeeds.",
        "Hadoop S3A, object_store",
        partial(writes.created, way=writes.by_complete),
        30,
    ),
    Guarantee(
        "replace-multipart",
        "Of CompleteMultipartUploads with If-Match for a version, one succeeds.",
        "Hadoop S3A",
        partial(writes.replaced, way=writes.by_complete),
        8,
    ),
    Guarantee(
        "delete-if-match",
        "A DELETE with If-Match deletes only this version, also when retried.",
        "locks of one object",
        writes.removed,
        20,
    ),
    Guarantee(
        "lost-create",
        "A retried If-None-Match: * is done once, and a 412 to one's own write is recognizable.",
        f"{_TABLES}, SlateDB, Terraform",
        partial(writes.lost, replaces=False),
        20,
    ),
    Guarantee(
        "lost-replace",
        "A retried If-Match is done once, and overwrites no other write.",
        "icechunk, Iceberg",
        partial(writes.lost, replaces=True),
        20,
    ),
    Guarantee(
        "lost-complete",
        "A retried CompleteMultipartUpload leaves the object, and overwrites no later one.",
        "AWS SDKs, Hadoop S3A",
        writes.lost_completion,
        10,
    ),
    Guarantee(
        "cut-put",
        "A PUT whose connection ends before its last byte stores nothing.",
        _ALL,
        writes.cut,
        20,
    ),
    Guarantee("read-new", "A GET finds an object after its PUT.", _ALL, reads.new, 40),
    Guarantee(
        "read-overwritten",
        "GET and HEAD have the new version after a PUT.",
        "icechunk, Iceberg, Terraform",
        reads.overwritten,
        20,
    ),
    Guarantee(
        "read-deleted", "A GET finds nothing after a DELETE.", "Terraform", reads.deleted, 40
    ),
    Guarantee(
        "read-whole", "A GET during a PUT has all bytes of a single version.", _ALL, reads.whole, 15
    ),
    Guarantee(
        "read-if-match",
        "A GET with If-Match or If-None-Match compares the ETag.",
        "Hadoop S3A, icechunk",
        reads.conditional,
        5,
    ),
    Guarantee(
        "list-new",
        "A listing has an object, and its size, after the PUT.",
        "Delta Lake, Kopia, Lance, restic",
        reads.listed,
        20,
    ),
    Guarantee(
        "list-deleted",
        "A listing lacks an object after the DELETE.",
        "Delta Lake, Kopia, restic",
        reads.unlisted,
        20,
    ),
    Guarantee(
        "list-order",
        "A listing is in the order of UTF-8 bytes.",
        "Delta Lake, Lance",
        reads.in_order,
        5,
    ),
    Guarantee(
        "list-pages",
        "The pages of thousands of keys have each once, and start where asked.",
        "Delta Lake, Kopia, Lance, restic",
        reads.in_pages,
        1,
    ),
    Guarantee(
        "list-stable",
        "Pages lack and repeat no object while others are written or deleted.",
        "Delta Lake, Kopia, restic",
        reads.stable,
        5,
    ),
    Guarantee(
        "ranges",
        "A range has the bytes asked for, up to the end of the object.",
        "DuckDB, icechunk, Lance, Zarr",
        reads.ranged,
        10,
    ),
    Guarantee(
        "multipart-order",
        "An object has its parts in the order of their numbers.",
        "Hadoop S3A, Iceberg, Lance",
        uploads.in_order,
        2,
    ),
    Guarantee(
        "multipart-parts",
        "An upload with a part that is missing or has another ETag is not completed.",
        "Hadoop S3A, Iceberg, Lance",
        uploads.checked,
        5,
    ),
    Guarantee(
        "multipart-hidden",
        "Parts cannot be seen before the upload is complete, nor after it was aborted.",
        "Hadoop S3A, Iceberg",
        uploads.hidden,
        10,
    ),
    Guarantee(
        "multipart-race",
        "Concurrent completions leave a single upload whole, and an abort wins or loses.",
        "Hadoop S3A, Iceberg",
        uploads.raced,
        10,
    ),
    Guarantee(
        "checksum-md5",
        "A PUT with a wrong Content-MD5 is rejected.",
        "Kopia, restic",
        partial(objects.summed, sums=objects.MD5),
        5,
    ),
    Guarantee(
        "checksum-header",
        "A PUT with a wrong x-amz-checksum is rejected.",
        "AWS SDKs",
        partial(objects.summed, sums=objects.CHECKSUMS),
        5,
    ),
    Guarantee(
        "checksum-signature",
        "A PUT of another body than the signed one is rejected.",
        "clients without TLS",
        objects.signed,
        5,
    ),
    Guarantee(
        "delete-many",
        "DeleteObjects deletes the named objects, and no others.",
        "Delta Lake, Iceberg",
        objects.deleted_many,
        5,
    ),
    Guarantee(
        "copy",
        "A copy has the bytes of its source, and is not made without it.",
        "Hadoop S3A, object_store",
        objects.copied,
        10,
    ),
    Guarantee(
        "refusals",
        "A write refused with 503 or 429 is not done, and Retry-After is a time.",
        _ALL,
        objects.refused,
        10,
    ),
    Guarantee(
        "keys-escaped",
        "Keys with characters that URLs or XML escape are kept.",
        "Hive partitions, Zarr",
        partial(reads.named, names=("a b+c/d~e%20?&=\xfc.7", "<&>\"'", "#;:@!$*()|^{}[]`,")),
        3,
    ),
    Guarantee(
        "keys-slashes",
        "Keys that are no paths are kept: a beside a/b, a//b, and a/ with bytes.",
        "fsspec, Hadoop S3A",
        partial(reads.named, names=("a", "a/b", "a//b", "c/")),
        3,
    ),
    Guarantee(
        "keys-unicode",
        "Keys in two normal forms of Unicode are two keys.",
        "Hive partitions",
        partial(reads.named, names=("\xe9", "e\u0301", "\U0001f600")),
        3,
    ),
    Guarantee(
        "keys-long",
        "Keys of 900 bytes are kept.",
        "Hive partitions",
        partial(reads.named, names=[("z" * 99 + "/") * 9 + "z"]),
        3,
    ),
    Guarantee(
        "clock",
        "Dates of all endpoints agree, also with Last-Modified.",
        "Kopia",
        reads.dated,
        5,
    ),
)
"""The guarantees in the order of the page."""


def chosen(texts: Iterable[str]) -> tuple[Guarantee, ...]:
    """Return guarantees by name, or by a program that relies on them; all without any text.

    Raises
    ------
    UsageError
        If a text names neither.
    """
    wanted = {text.strip().lower() for text in texts}
    words = {one.name: {one.name, *one.users.lower().split(", ")} for one in GUARANTEES}
    check_known(wanted, set().union(*words.values()), "there is no guarantee or program")
    return tuple(one for one in GUARANTEES if not wanted or wanted & words[one.name])
