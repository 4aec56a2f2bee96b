"""A body and its checksums in the request: which are compared?"""

import base64
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.probes.place import BODY, Place, answer

CRC32 = base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()


def wrong(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


def content_md5(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY, ContentMD5=wrong(16)))


def crc32(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY, ChecksumCRC32=wrong(4)))


def crc32c(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY, ChecksumCRC32C=wrong(4)))


def crc64nvme(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY, ChecksumCRC64NVME=wrong(8)))


def sha256(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY, ChecksumSHA256=wrong(32)))


def signed(at: Place) -> str:
    """Change a body after it was signed."""

    def change(request: Any, **_: Any) -> None:
        request.body = bytes(len(BODY))

    with hooked(at, "before-send.s3.PutObject", change):
        return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY))


def of_a_part(at: Place) -> str:
    upload = at.s3.create_multipart_upload(**at.key("a"))["UploadId"]
    return answer(
        lambda: at.s3.upload_part(
            **at.key("a"), UploadId=upload, PartNumber=1, Body=BODY, ContentMD5=wrong(16)
        )
    )


def trailer(at: Place) -> str:
    """Send the right checksum behind the body, as SDKs do over https by default."""
    reported = put_with_trailer(at, CRC32)
    if reported != "200":
        return reported
    return reported if at.bytes_of("a") == BODY else "200, other bytes"


def wrong_trailer(at: Place) -> str:
    return put_with_trailer(at, wrong(4))


def put_with_trailer(at: Place, crc: str) -> str:
    def ask(params: Any, **_: Any) -> None:
        place = {"algorithm": "crc32", "in": "trailer", "name": "x-amz-checksum-crc32"}
        params["context"]["checksum"] = {"request_algorithm": place}

    def change(request: Any, **_: Any) -> None:
        request.body = request.body.read().replace(CRC32.encode(), crc.encode())

    with (
        hooked(at, "before-call.s3.PutObject", ask),
        hooked(at, "before-send.s3.PutObject", change),
    ):
        return answer(lambda: at.s3.put_object(**at.key("a"), Body=BODY))


@contextmanager
def hooked(at: Place, event: str, do: Callable[..., None]) -> Iterator[None]:
    """Change requests of botocore, because no other library sends wrong ones."""
    at.s3.meta.events.register(event, do)
    try:
        yield
    finally:
        at.s3.meta.events.unregister(event, do)


def repeats_checksum(at: Place) -> str:
    """Request the checksum that an object was stored with."""
    at.put("a", ChecksumCRC32=CRC32)
    reported = at.s3.head_object(**at.key("a"), ChecksumMode="ENABLED").get("ChecksumCRC32")
    return {CRC32: "returned", None: "not returned"}.get(reported, "another")
