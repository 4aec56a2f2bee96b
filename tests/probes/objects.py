"""Objects: existence, access, copying and deleting."""

import hashlib
import socket
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

from tests.commands.processes import PATIENCE_S
from tests.probes.place import BODY, Place, answer, open_s3


def etag(at: Place) -> str:
    md5 = hashlib.md5(BODY, usedforsecurity=False).hexdigest()
    return "MD5 of the bytes" if at.put("a").strip('"') == md5 else "another"


def metadata(at: Place) -> str:
    at.put("a", Metadata={"word": "kept"}, ContentType="text/plain")
    document = at.s3.head_object(**at.key("a"))
    if document["ContentType"] != "text/plain":
        return "another type"
    words = {"word": "kept", "Word": "kept, in capitals"}
    return next((words.get(name, "not kept") for name in document["Metadata"]), "not kept")


def cut_off(at: Place) -> str:
    """Promise more than is sent, with a signature that does not cover the body."""
    half = bytes(50_000)
    url = urlsplit(at.s3.generate_presigned_url("put_object", Params=at.key("a")))
    head = f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n"
    with socket.create_connection((url.hostname, url.port), timeout=PATIENCE_S) as connection:
        connection.sendall(f"{head}Content-Length: {2 * len(half)}\r\n\r\n".encode() + half)
        connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            # When the server has closed its side, too, it has processed all bytes.
            while connection.recv(1 << 16):
                pass
    return "what has come is stored" if at.names() else "nothing is stored"


def missing(at: Place) -> str:
    return answer(lambda: at.s3.get_object(**at.key("a")))


def missing_bucket(at: Place) -> str:
    return answer(lambda: at.s3.get_object(Bucket="there-is-no-such-bucket", Key="a"))


def wrong_secret(at: Place) -> str:
    return put_by_another(at, AWS_SECRET_ACCESS_KEY="wrong")


def unknown_access_key(at: Place) -> str:
    return put_by_another(at, AWS_ACCESS_KEY_ID="UNKNOWN")


def put_by_another(at: Place, **keys: str) -> str:
    with closing(open_s3(at.server, {**at.server.environment, **keys})) as other:
        return answer(lambda: other.put_object(**at.key("a"), Body=BODY))


def copy(at: Place) -> str:
    at.put("a", Metadata={"word": "kept"})
    text = answer(lambda: at.s3.copy_object(**at.key("b"), CopySource=at.source("a")))
    if text != "200":
        return text
    if at.bytes_of("b") != BODY:
        return f"{text}, other bytes"
    kept = at.s3.head_object(**at.key("b"))["Metadata"]
    return text if kept else f"{text}, without metadata"


def copy_of_nothing(at: Place) -> str:
    return answer(lambda: at.s3.copy_object(**at.key("b"), CopySource=at.source("a")))


def copy_onto_itself(at: Place) -> str:
    at.put("a")
    return answer(lambda: at.s3.copy_object(**at.key("a"), CopySource=at.source("a")))


def delete_missing(at: Place) -> str:
    return answer(lambda: at.s3.delete_object(**at.key("a")))


def delete_many(at: Place) -> str:
    """Delete two existing objects and a missing one."""
    at.put("a")
    at.put("b")
    wanted = [at.key(name)["Key"] for name in ("a", "b", "c")]
    document = at.s3.delete_objects(
        Bucket=at.server.bucket, Delete={"Objects": [{"Key": key} for key in wanted]}
    )
    if at.names():
        return "not deleted"
    named = sorted(entry["Key"] for entry in document.get("Deleted", []))
    return "all named" if named == wanted else f"{len(named)} of 3 named"


def delete_too_many(at: Place) -> str:
    objects: Any = [{"Key": at.key(str(number))["Key"]} for number in range(1001)]
    return answer(
        lambda: at.s3.delete_objects(Bucket=at.server.bucket, Delete={"Objects": objects})
    )
