"""Requests that hold on a condition only."""

from tests.probes.place import BODY, Place, answer

OTHER = '"00000000000000000000000000000000"'
"""An ETag that no object of a probe has."""


def unchanged(at: Place, text: str) -> str:
    """Return the answer, and whether the object that should remain is missing."""
    kept = at.names() == ["a"] and at.bytes_of("a") == BODY
    return text if kept else f"{text}, done all the same"


def put_if_none_match(at: Place) -> str:
    at.put("a")
    return unchanged(
        at, answer(lambda: at.s3.put_object(**at.key("a"), Body=b"new", IfNoneMatch="*"))
    )


def put_if_none_match_absent(at: Place) -> str:
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=b"new", IfNoneMatch="*"))


def put_if_match(at: Place) -> str:
    etag = at.put("a")
    return answer(lambda: at.s3.put_object(**at.key("a"), Body=b"new", IfMatch=etag))


def put_if_match_other(at: Place) -> str:
    at.put("a")
    return unchanged(
        at, answer(lambda: at.s3.put_object(**at.key("a"), Body=b"new", IfMatch=OTHER))
    )


def put_if_match_absent(at: Place) -> str:
    text = answer(lambda: at.s3.put_object(**at.key("a"), Body=b"new", IfMatch=OTHER))
    return text if at.names() == [] else f"{text}, done all the same"


def complete_if_none_match(at: Place) -> str:
    upload = at.s3.create_multipart_upload(**at.key("a"))["UploadId"]
    part = at.s3.upload_part(**at.key("a"), UploadId=upload, PartNumber=1, Body=b"new")
    at.put("a")
    text = answer(
        lambda: at.s3.complete_multipart_upload(
            **at.key("a"),
            UploadId=upload,
            MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
            IfNoneMatch="*",
        )
    )
    return unchanged(at, text)


def delete_if_match(at: Place) -> str:
    etag = at.put("a")
    text = answer(lambda: at.s3.delete_object(**at.key("a"), IfMatch=etag))
    return f"{text}, not done" if at.names() else text


def delete_if_match_other(at: Place) -> str:
    at.put("a")
    return unchanged(at, answer(lambda: at.s3.delete_object(**at.key("a"), IfMatch=OTHER)))


def get_if_match_other(at: Place) -> str:
    at.put("a")
    return answer(lambda: at.s3.get_object(**at.key("a"), IfMatch=OTHER))


def get_if_none_match(at: Place) -> str:
    etag = at.put("a")
    return answer(lambda: at.s3.get_object(**at.key("a"), IfNoneMatch=etag))


def copy_if_match_other(at: Place) -> str:
    at.put("a")
    return answer(
        lambda: at.s3.copy_object(**at.key("b"), CopySource=at.source("a"), CopySourceIfMatch=OTHER)
    )
