"""A part of an object."""

from botocore.exceptions import ClientError

from tests.probes.place import BODY, Place, error


def ranged(at: Place, extent: str, wanted: bytes, body: bytes = BODY) -> str:
    at.put("a", body)
    try:
        document = at.s3.get_object(**at.key("a"), Range=f"bytes={extent}")
    except ClientError as exc:
        return error(exc)
    status = document["ResponseMetadata"]["HTTPStatusCode"]
    got = document["Body"].read()
    words = {body: f"{status}, the whole object", wanted: str(status)}
    return words.get(got, f"{status}, other bytes")


def inner(at: Place) -> str:
    return ranged(at, "2-4", BODY[2:5])


def suffix(at: Place) -> str:
    return ranged(at, "-3", BODY[-3:])


def longer_suffix(at: Place) -> str:
    return ranged(at, "-99", BODY)


def across_the_end(at: Place) -> str:
    return ranged(at, "8-99", BODY[8:])


def beyond_the_end(at: Place) -> str:
    return ranged(at, "10-20", b"")


def of_nothing(at: Place) -> str:
    return ranged(at, "0-0", b"", b"")
