"""Checksums, copies, deletions of many objects, and refusals under load."""

import hashlib
import xml.etree.ElementTree as ET
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final

from serverless_bench.base.clock import http_date_s
from serverless_bench.features.qualify.trial import BUSY, MISSING, StoreTrial

_BODY: Final = b"0123456789"
_BURST: Final = 4


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


MD5: Final[Mapping[str, Callable[[bytes], bytes]]] = {"content-md5": _md5}
CHECKSUMS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "x-amz-checksum-crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "x-amz-checksum-sha256": lambda data: hashlib.sha256(data).digest(),
}


def summed(trial: StoreTrial, sums: Mapping[str, Callable[[bytes], bytes]]) -> int:
    """Write objects with right and wrong checksums, new ones and over existing ones.

    Returns
    -------
    int
        Number of wrong checksums.
    """
    for header, digest in sums.items():
        right, wrong = (
            {header: b64encode(digest(data)).decode()} for data in (_BODY, b"another body")
        )
        trial.need(trial.ask("PUT", "old", headers=right, body=_BODY))
        for name in ("old", "new"):
            request = trial.ask("PUT", name, 1, headers=wrong, body=_BODY[:-1] + b"x")
            problem = f"a PUT with a wrong {header} is accepted"
            trial.expect(not request.ok, problem)
        for name, before in (("old", _BODY), ("new", None)):
            trial.all_see(name, before, f"a PUT rejected for a wrong {header} is done")
    return 2 * len(sums)


def signed(trial: StoreTrial) -> None:
    """Write an object with the signature of another body."""
    request = trial.ask("PUT", "a", body=_BODY, lies=True)
    is_stored = trial.look("a").ok
    trial.expect(not request.ok and not is_stored, "a PUT of another body than signed is accepted")


def deleted_many(trial: StoreTrial) -> None:
    """Delete several objects in one request: odd names, and one that is not there."""
    gone, kept = ["a", "b c+d", "e&f", "\xe9"], ["aa", "b", "e"]
    for name in (*gone, *kept):
        trial.put(name, b"x")
    root = ET.Element("Delete")
    for name in (*gone, "not there"):
        ET.SubElement(ET.SubElement(root, "Object"), "Key").text = trial.folder + name
    body = ET.tostring(root)
    headers = {"content-md5": b64encode(_md5(body)).decode()}
    request = trial.need(
        trial.ask("POST", None, trial.writer, query="delete=", headers=headers, body=body)
    )
    trial.expect(b"<Error>" not in request.text, "objects of a request for many are not deleted")
    found = trial.page(1).names
    trial.expect(found == kept, f"after the deletion of some objects others are there: {found}")


def copied(trial: StoreTrial) -> None:
    """Copy an object, one that is not there, and one on the condition of an older version."""

    def copy(source: str, name: str, **condition: str) -> bool:
        headers = trial.copy_source(source) | {
            f"x-amz-copy-source-{header.replace('_', '-')}": value
            for header, value in condition.items()
        }
        request = trial.ask("PUT", name, 1, headers=headers)
        if request.ok or request.status not in {MISSING, 412}:
            trial.need(request)
        return request.ok

    older = trial.put("a b", b"older")
    trial.put("a b", b"newer", trial.writer)
    trial.expect(copy("a b", "copy"), "a copy of an object that was just written fails")
    trial.put("a b", b"latest")
    trial.all_see("copy", b"newer", "a copy has other bytes than its source had")
    for name, problem, is_done in (
        ("none", "a copy of an object that is not there", copy("not there", "none")),
        ("older", "a copy if the source has an older ETag", copy("a b", "older", if_match=older)),
    ):
        is_stored = trial.look(name, 2).status != MISSING
        trial.expect(not is_done and not is_stored, f"{problem} is made")


def refused(trial: StoreTrial) -> int:
    """Send a burst of writes, and look whether those refused with 503 or 429 are done.

    Returns
    -------
    int
        Number of writes.
    """
    names = [str(number) for number in range(_BURST)]
    for name in names:
        requests = trial.together(
            lambda function, gate, name=name: trial.ask(  # type: ignore[misc]
                "PUT", f"{name}.{function}", function, body=b"x", gate=gate
            )
        )
        for request in requests:
            if request.status in BUSY:
                after = request.answer.get("retry-after", "0")
                is_time = after.isdecimal() or http_date_s(after) is not None
                trial.expect(is_time, "Retry-After is neither a number nor a date")
                seen = trial.look(f"{name}.{request.function}")
                trial.expect(seen.status == MISSING, "a write refused as too many is done")
            else:
                trial.need(request)
    return len(names) * trial.lab.functions
