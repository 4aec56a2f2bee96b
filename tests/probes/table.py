"""Every probe, and S3's documented answer: the rows of the table in docs/stores.md."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from botocore.exceptions import ClientError

from tests.probes import checksums, conditions, keys, listing, multipart, objects, ranges
from tests.probes.place import Place, error, open_s3
from tests.stores.servers import Server

Ask = Callable[[Place], str]


@dataclass(frozen=True)
class Probe:
    ask: Ask
    s3: str
    """S3's answer by AWS's documentation; no account was available."""


GROUPS: Mapping[str, Mapping[str, Probe]] = {
    "Checksums": {
        "put with a wrong `Content-MD5`": Probe(checksums.content_md5, "400 BadDigest"),
        "put with a wrong `x-amz-checksum-crc32`": Probe(checksums.crc32, "400 BadDigest"),
        "put with a wrong `x-amz-checksum-crc32c`": Probe(checksums.crc32c, "400 BadDigest"),
        "put with a wrong `x-amz-checksum-crc64nvme`": Probe(checksums.crc64nvme, "400 BadDigest"),
        "put with a wrong `x-amz-checksum-sha256`": Probe(checksums.sha256, "400 BadDigest"),
        "put of another body than was signed": Probe(
            checksums.signed, "400 XAmzContentSHA256Mismatch"
        ),
        "put with the right CRC32 in a trailer": Probe(checksums.trailer, "200"),
        "put with a wrong CRC32 in a trailer": Probe(checksums.wrong_trailer, "400 BadDigest"),
        "part with a wrong `Content-MD5`": Probe(checksums.of_a_part, "400 BadDigest"),
        "the CRC32 of a put, asked for with HEAD": Probe(checksums.repeats_checksum, "returned"),
    },
    "Conditions": {
        "put `If-None-Match: *`, nothing there": Probe(conditions.put_if_none_match_absent, "200"),
        "put `If-None-Match: *`, an object there": Probe(
            conditions.put_if_none_match, "412 PreconditionFailed"
        ),
        "complete `If-None-Match: *`, an object there": Probe(
            conditions.complete_if_none_match, "412 PreconditionFailed"
        ),
        "put `If-Match`, the ETag there": Probe(conditions.put_if_match, "200"),
        "put `If-Match`, another ETag there": Probe(
            conditions.put_if_match_other, "412 PreconditionFailed"
        ),
        "put `If-Match`, nothing there": Probe(conditions.put_if_match_absent, "404 NoSuchKey"),
        "delete `If-Match`, the ETag there": Probe(conditions.delete_if_match, "204"),
        "delete `If-Match`, another ETag there": Probe(
            conditions.delete_if_match_other, "412 PreconditionFailed"
        ),
        "get `If-Match`, another ETag there": Probe(
            conditions.get_if_match_other, "412 PreconditionFailed"
        ),
        "get `If-None-Match`, the ETag there": Probe(conditions.get_if_none_match, "304"),
        "copy `If-Match`, another ETag there": Probe(
            conditions.copy_if_match_other, "412 PreconditionFailed"
        ),
    },
    "Listing": {
        "order": Probe(listing.order, "by UTF-8"),
        "order of characters beyond 16 bits": Probe(listing.order_beyond_bmp, "by UTF-8"),
        "`StartAfter` a key that is not there": Probe(listing.start_after, "what is behind it"),
        "pages of two keys": Probe(listing.pages, "complete"),
        "`Prefix`": Probe(listing.part_of_a_name, "any text"),
        "`Delimiter`": Probe(listing.delimiter, "grouped"),
        "size and ETag": Probe(listing.size_and_etag, "those of the object"),
    },
    "Ranges": {
        "within the object": Probe(ranges.inner, "206"),
        "the last bytes": Probe(ranges.suffix, "206"),
        "the last bytes, more than there are": Probe(ranges.longer_suffix, "206"),
        "across the end": Probe(ranges.across_the_end, "206"),
        "beyond the end": Probe(ranges.beyond_the_end, "416 InvalidRange"),
        "of an empty object": Probe(ranges.of_nothing, "416 InvalidRange"),
        "one part, by its number": Probe(multipart.part_by_number, "206"),
    },
    "Uploads in parts": {
        "ETag": Probe(multipart.etag, "MD5 of the parts' MD5s, `-2`"),
        "one under way": Probe(multipart.under_way, "listed"),
        "one under way, in the listing of objects": Probe(multipart.invisible, "no object yet"),
        "its parts": Probe(multipart.parts, "listed"),
        "abort": Probe(multipart.aborted, "204"),
        "abort again": Probe(multipart.aborted_twice, "404 NoSuchUpload"),
        "complete with a part below 5 MiB before the last": Probe(
            multipart.small_part, "400 EntityTooSmall"
        ),
        "complete with a wrong ETag": Probe(multipart.wrong_etag, "400 InvalidPart"),
        "complete with a part that was not sent": Probe(multipart.part_missing, "400 InvalidPart"),
        "complete with parts in the wrong order": Probe(
            multipart.wrong_order, "400 InvalidPartOrder"
        ),
        "complete an unknown upload": Probe(multipart.unknown, "404 NoSuchUpload"),
        "copy of a range as a part": Probe(multipart.copied_part, "200"),
    },
    "Objects": {
        "ETag": Probe(objects.etag, "MD5 of the bytes"),
        "metadata and type": Probe(objects.metadata, "kept"),
        "put cut off before its last byte": Probe(objects.cut_off, "nothing is stored"),
        "get of a missing object": Probe(objects.missing, "404 NoSuchKey"),
        "get in a missing bucket": Probe(objects.missing_bucket, "404 NoSuchBucket"),
        "put with a wrong secret key": Probe(objects.wrong_secret, "403 SignatureDoesNotMatch"),
        "put with an unknown access key": Probe(
            objects.unknown_access_key, "403 InvalidAccessKeyId"
        ),
        "copy": Probe(objects.copy, "200"),
        "copy of a missing object": Probe(objects.copy_of_nothing, "404 NoSuchKey"),
        "copy onto itself, nothing changed": Probe(objects.copy_onto_itself, "400 InvalidRequest"),
        "delete of a missing object": Probe(objects.delete_missing, "204"),
        "delete of many, one missing": Probe(objects.delete_many, "all named"),
        "delete of 1,001": Probe(objects.delete_too_many, "400 MalformedXML"),
    },
    "Keys": {
        "what URLs and XML escape": Probe(keys.odd, "kept"),
        "a backslash": Probe(keys.backslash, "kept"),
        "control characters": Probe(keys.control, "kept"),
        "a letter in two normal forms": Probe(keys.normal_form, "kept"),
        "`a` beside `a/b`": Probe(keys.both, "kept"),
        "`a//b` beside `a/b`": Probe(keys.empty_part, "kept"),
        "`a/./b` beside `a/b`": Probe(keys.dots, "kept"),
        "`a/../b` beside `b`": Probe(keys.double_dots, "kept"),
        "`a/` with bytes": Probe(keys.slash_at_the_end, "kept"),
        "300 bytes between slashes": Probe(keys.long_part, "kept"),
        "1,024 bytes": Probe(keys.longest, "kept"),
        "1,025 bytes": Probe(keys.too_long, "400 KeyTooLongError"),
    },
}


def answers(server: Server) -> dict[tuple[str, str], str]:
    """Return a server's answers, by group and row."""
    with closing(open_s3(server, server.environment)) as s3:
        return {
            (group, what): asked(probe, Place(server, s3))
            for group, probes in GROUPS.items()
            for what, probe in probes.items()
        }


def asked(probe: Probe, place: Place) -> str:
    """Return the answer to a probe, also if a request was refused that only leads up to it."""
    try:
        return probe.ask(place)
    except ClientError as exc:
        return error(exc)
