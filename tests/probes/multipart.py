"""Uploads in parts."""

import hashlib
from collections.abc import Sequence
from typing import Any

from tests.probes.place import Place, answer

FIRST, LAST = bytes(5 << 20), b"end"
"""The smallest part that may be followed by another, and another."""


class Upload:
    def __init__(self, at: Place) -> None:
        self.at = at
        self.key = at.key("a")
        self.known: Any = {
            **self.key,
            "UploadId": at.s3.create_multipart_upload(**self.key)["UploadId"],
        }

    def send(self, number: int, body: bytes) -> Any:
        return self.at.s3.upload_part(**self.known, PartNumber=number, Body=body)

    def part(self, number: int, body: bytes) -> str:
        """Send a part, and return its ETag."""
        etag: str = self.send(number, body)["ETag"]
        return etag

    def complete(self, *parts: tuple[int, str]) -> Any:
        return self.at.s3.complete_multipart_upload(
            **self.known,
            MultipartUpload={
                "Parts": [{"PartNumber": number, "ETag": etag} for number, etag in parts]
            },
        )


def whole(at: Place) -> str:
    """Store an object of two parts, and return its ETag."""
    upload = Upload(at)
    etag: str = upload.complete((1, upload.part(1, FIRST)), (2, upload.part(2, LAST)))["ETag"]
    return etag


def etag(at: Place) -> str:
    document = whole(at).strip('"')
    parts = [hashlib.md5(part, usedforsecurity=False) for part in (FIRST, LAST)]
    of_parts = hashlib.md5(b"".join(part.digest() for part in parts), usedforsecurity=False)
    of_all = hashlib.md5(FIRST + LAST, usedforsecurity=False)
    words = {
        f"{of_parts.hexdigest()}-2": "MD5 of the parts' MD5s, `-2`",
        of_all.hexdigest(): "MD5 of the bytes",
    }
    return words.get(document, "another")


def under_way(at: Place) -> str:
    known = Upload(at).known
    document = at.s3.list_multipart_uploads(Bucket=known["Bucket"], Prefix=at.prefix)
    found = [entry["UploadId"] for entry in document.get("Uploads", [])]
    return "listed" if found == [known["UploadId"]] else "not listed"


def invisible(at: Place) -> str:
    upload = Upload(at)
    upload.part(1, LAST)
    return "no object yet" if at.names() == [] else "listed as an object"


def parts(at: Place) -> str:
    upload = Upload(at)
    etags = [upload.part(number, LAST) for number in (1, 2)]
    document = at.s3.list_parts(**upload.known).get("Parts", [])
    found = {part["PartNumber"]: part.get("ETag") for part in document}
    if found.keys() != {1, 2}:
        return "not listed"
    return "listed" if [found[1], found[2]] == etags else "listed without ETags"


def aborted(at: Place) -> str:
    upload = Upload(at)
    upload.part(1, LAST)
    text = answer(lambda: at.s3.abort_multipart_upload(**upload.known))
    return f"{text}, goes on" if answer(lambda: upload.send(2, LAST)) == "200" else text


def aborted_twice(at: Place) -> str:
    upload = Upload(at)
    at.s3.abort_multipart_upload(**upload.known)
    return answer(lambda: at.s3.abort_multipart_upload(**upload.known))


def completed(at: Place, numbers: Sequence[int], body: bytes = FIRST, etag: str = "") -> str:
    upload = Upload(at)
    etags = {number: upload.part(number, body) for number in (1, 2)}
    return answer(lambda: upload.complete(*((number, etag or etags[number]) for number in numbers)))


def small_part(at: Place) -> str:
    return completed(at, (1, 2), LAST)


def wrong_etag(at: Place) -> str:
    return completed(at, (1, 2), etag='"00000000000000000000000000000000"')


def wrong_order(at: Place) -> str:
    return completed(at, (2, 1))


def part_missing(at: Place) -> str:
    """Complete with a part that was never sent."""
    upload = Upload(at)
    sent = upload.part(1, LAST)
    return answer(lambda: upload.complete((2, sent)))


def unknown(at: Place) -> str:
    upload = Upload(at)
    sent = upload.part(1, LAST)
    upload.known["UploadId"] = "no-such-upload"
    return answer(lambda: upload.complete((1, sent)))


def part_by_number(at: Place) -> str:
    whole(at)
    document = at.s3.get_object(**at.key("a"), PartNumber=2)
    got, status = document["Body"].read(), document["ResponseMetadata"]["HTTPStatusCode"]
    words = {LAST: str(status), FIRST + LAST: f"{status}, the whole object"}
    return words.get(got, f"{status}, other bytes")


def copied_part(at: Place) -> str:
    at.put("source")
    upload = Upload(at)
    return answer(
        lambda: at.s3.upload_part_copy(
            **upload.known,
            PartNumber=1,
            CopySource=at.source("source"),
            CopySourceRange="bytes=2-4",
        )
    )
