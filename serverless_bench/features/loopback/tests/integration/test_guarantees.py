"""Conditions, checksums and copies of objects that are no benchmark's, and faults of all keys."""

import hashlib
import http.client
import json
import zlib
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.keys import object_key

BODY = b"0123456789"
CRC32 = b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()


class Answer(NamedTuple):
    status: int
    etag: str
    text: bytes


def ask(url: str, method: str, path: str, body: bytes = b"", /, **headers: str) -> Answer:
    line = http.client.HTTPConnection(urlsplit(url).netloc)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, body, named)
        answer = line.getresponse()
        return Answer(answer.status, answer.headers.get("ETag", ""), answer.read())
    finally:
        line.close()


def digest(name: str, data: bytes = BODY) -> str:
    return b64encode(hashlib.new(name, data, usedforsecurity=False).digest()).decode()


@pytest.mark.parametrize(
    ("header", "right", "wrong"),
    [
        ("content_md5", digest("md5"), digest("md5", b"")),
        ("x_amz_checksum_sha256", digest("sha256"), digest("sha256", b"")),
        ("x_amz_checksum_crc32", CRC32, "AAAAAA=="),
        ("x_amz_content_sha256", hashlib.sha256(BODY).hexdigest(), "0" * 64),
    ],
)
def test_checksums_are_compared(header: str, right: str, wrong: str) -> None:
    with serving() as server:
        url = server.endpoint_url
        answer = ask(url, "PUT", "/any/k", BODY, **{header: wrong})
        assert (answer.status, b"BadDigest" in answer.text) == (400, True)
        assert ask(url, "GET", "/any/k").status == 404
        assert ask(url, "PUT", "/any/k", BODY, **{header: right}).status == 200
        assert ask(url, "GET", "/any/k").text == BODY


def test_a_body_that_is_not_signed_is_accepted() -> None:
    with serving() as server:
        unsigned = {"x_amz_content_sha256": "UNSIGNED-PAYLOAD"}
        assert ask(server.endpoint_url, "PUT", "/any/k", BODY, **unsigned).status == 200


def test_conditions_of_reads_deletions_and_copies() -> None:
    with serving() as server:
        url = server.endpoint_url
        older = ask(url, "PUT", "/any/k", b"older").etag
        etag = ask(url, "PUT", "/any/k", b"newer").etag
        assert ask(url, "GET", "/any/k", if_match=older).status == 412
        assert ask(url, "GET", "/any/k", if_match=etag).text == b"newer"
        assert ask(url, "GET", "/any/k", if_none_match=etag)[::2] == (304, b"")
        assert ask(url, "HEAD", "/any/k", if_none_match=older).status == 200
        assert ask(url, "DELETE", "/any/k", if_match=older).status == 412
        source = {"x_amz_copy_source": "/any/k"}
        assert ask(url, "PUT", "/any/c", **source, x_amz_copy_source_if_match=older).status == 412
        assert (
            ask(url, "PUT", "/any/c", **source, x_amz_copy_source_if_none_match="a").status == 501
        )
        assert ask(url, "PUT", "/any/c?partNumber=1&uploadId=u", **source).status == 501
        assert ask(url, "PUT", "/any/c", **source, if_match=etag).status == 412
        assert ask(url, "PUT", "/any/c", **source, if_none_match="*").status == 200
        assert ask(url, "PUT", "/any/c", **source, if_none_match="*").status == 412
        assert ask(url, "PUT", "/any/d", x_amz_copy_source="any/missing").status == 404
        assert ask(url, "DELETE", "/any/k", if_match=etag).status == 204
        assert [ask(url, "GET", f"/any/{key}").status for key in "kcd"] == [404, 200, 404]


def test_an_object_that_was_never_written_is_deleted_on_its_condition() -> None:
    key = object_key(prefix="sbench/", run_id="x", index=0, launch=0, number=0, size=64)
    with serving() as server:
        url = server.endpoint_url
        etag = ask(url, "GET", f"/any/{key}").etag
        assert ask(url, "DELETE", f"/any/{key}", if_match=etag).status == 204
        assert ask(url, "PUT", f"/any/{key}", bytes(64), if_match=etag).status == 412


def faulty(log: Path, *kinds: FaultKind) -> LoopbackSettings:
    return LoopbackSettings(rates=dict.fromkeys(kinds, 1.0), log=log)


def test_an_answer_is_lost_after_the_store_acted(tmp_path: Path) -> None:
    with serving(faulty(tmp_path / "log", FaultKind.LOST_ANSWER)) as server:
        url = server.endpoint_url
        for method in ("PUT", "DELETE"):
            with pytest.raises(http.client.RemoteDisconnected):
                ask(url, method, "/any/k", BODY if method == "PUT" else b"")
            assert ask(url, "GET", "/any/k").status == (200 if method == "PUT" else 404)
        # Errors arrive, and control objects meet no faults.
        assert ask(url, "PUT", "/any/k", BODY, if_match='"e"').status == 412
        assert ask(url, "PUT", f"/any/{CONTROL_PREFIX}claims/k", BODY).status == 200
    rows = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(row["kind"], row["request"], row["key"]) for row in rows] == [
        ("lost-answer", "put", "k"),
        ("lost-answer", "delete", "k"),
    ]


@pytest.mark.parametrize(
    ("kind", "listed", "deleted", "left"),
    [
        (FaultKind.LIST_ERROR, (503, 0), 204, 404),
        (FaultKind.LIST_MISSING, (200, 1), 204, 404),
        (FaultKind.DELETE_ERROR, (200, 2), 503, 200),
        (FaultKind.DELETE_IGNORED, (200, 2), 204, 200),
    ],
)
def test_faults_of_listings_and_deletions(
    tmp_path: Path, kind: FaultKind, listed: tuple[int, int], deleted: int, left: int
) -> None:
    with serving(faulty(tmp_path / "log", kind)) as server:
        url = server.endpoint_url
        for key in "ab":
            assert ask(url, "PUT", f"/any/{key}", BODY).status == 200
        page = ask(url, "GET", "/any?list-type=2")
        assert (page.status, page.text.count(b"<Contents>")) == listed
        assert ask(url, "DELETE", "/any/a").status == deleted
        assert ask(url, "GET", "/any/a").status == left
    assert {json.loads(line)["kind"] for line in (tmp_path / "log").read_text().splitlines()} == {
        kind
    }
