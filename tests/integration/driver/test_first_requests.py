"""The first requests to a store say what is wrong with them."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serverless_bench.base.errors import StoreError, UsageError, WrongRegion
from serverless_bench.clients import open_client
from serverless_bench.driver.bucket import Bucket
from serverless_bench.driver.cleanup import delete
from serverless_bench.driver.target import ensure, resolve
from serverless_bench.features.testing.client_parts import PatientMeter, RangeOf
from serverless_bench.job.target import Addressing, Target, Transfer
from tests.commands.command import Sbench
from tests.contract.declared import clients_without
from tests.stores.servers import KEYS

Answer = tuple[int, str, str]
"""Status, error code and the rest of an error's document; an empty code is a success."""
LIST = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
FINE: Answer = (200, "", LIST)


class Request(BaseHTTPRequestHandler):
    """Answers by the server's function, and notes method, path, region and body."""

    protocol_version = "HTTP/1.1"
    server: "Store"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.server.date or super().date_time_string(timestamp)

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
        scope = re.search(r"/\d{8}/([^/]*)/s3/", self.headers.get("Authorization", ""))
        region = scope[1] if scope else ""
        self.server.seen.append((self.command, self.path, region, body))
        status, code, rest = self.server.script(self.command, self.path, region, body)
        text = f"<Error><Code>{code}</Code>{rest}</Error>" if code else rest
        data = b"" if self.command == "HEAD" else text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"etag"')
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - the library's


class Store(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Callable[[str, str, str, str], Answer], date: str) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.script, self.date = script, date
        self.seen: list[tuple[str, str, str, str]] = []
        self.target = Target(bucket="b", endpoint_url=f"http://127.0.0.1:{self.server_port}")


@contextmanager
def store(script: Callable[[str, str, str, str], Answer], date: str = "") -> Iterator[Store]:
    with Store(script, date) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def refusal(server: Store, **changed: object) -> StoreError:
    with pytest.raises(StoreError) as caught:
        resolve(Target(bucket="b", endpoint_url=server.target.endpoint_url, **changed))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ((403, "SecondLevelDomainForbidden", ""), "`addressing` virtual"),
        ((400, "X", "<Message>use virtual-hosted style</Message>"), "`addressing` virtual"),
        ((403, "AccessDenied", "<Message>no</Message>"), "s3:ListBucket"),
        ((403, "InvalidAccessKeyId", ""), "AWS_ACCESS_KEY_ID"),
        ((400, "InvalidBucketName", ""), "`bucket`"),
        ((400, "AuthorizationHeaderMalformed", "<Message>bad scope</Message>"), "`region`"),
    ],
)
def test_a_get_asks_why_a_head_was_refused(answer: Answer, hint: str) -> None:
    with store(lambda *_: answer) as server:
        error = refusal(server)
    assert hint in error.hint
    assert answer[1] in str(error)
    assert [method for method, *_ in server.seen] == ["HEAD", "GET"]


def test_the_stores_region_is_named() -> None:
    def script(method: str, path: str, region: str, body: str) -> Answer:
        del method, path, body
        wrong = (400, "AuthorizationHeaderMalformed", "<Region>fr-par</Region>")
        return FINE if region == "fr-par" else wrong

    with store(script) as server:
        error = refusal(server)
        there = replace(server.target, region="fr-par")
        resolved = resolve(there)
    assert resolved == there
    assert isinstance(error.__cause__, WrongRegion)
    assert error.__cause__.region == "fr-par"
    assert "fr-par" in error.hint


def test_a_403_with_another_time_is_the_clocks() -> None:
    with store(lambda *_: (403, "SignatureDoesNotMatch", ""), date=formatdate(0)) as server:
        error = refusal(server)
    assert "RequestTimeTooSkewed" in str(error)
    assert "AWS_ACCESS_KEY_ID" not in error.hint


def test_a_store_that_only_refuses_head_is_used() -> None:
    with store(lambda method, *_: (403, "", "") if method == "HEAD" else FINE) as server:
        assert resolve(server.target).bucket == "b"


def test_a_store_without_virtual_hosts_is_found_out() -> None:
    listing = (200, "", "<ListAllMyBucketsResult/>")
    with store(lambda *_: listing) as server:
        port = urlsplit(server.target.endpoint_url).port
        target = Target(
            bucket="b", endpoint_url=f"http://localhost:{port}", addressing=Addressing.VIRTUAL
        )
        with pytest.raises(StoreError) as caught:
            resolve(target)
    assert caught.value.hint.endswith("`addressing` path")


def test_a_name_that_does_not_resolve_is_the_one_with_the_bucket() -> None:
    with store(lambda *_: FINE) as server:
        error = refusal(server, addressing=Addressing.VIRTUAL)
    assert "b.127.0.0.1" in str(error)
    assert "`addressing` path" in error.hint


@pytest.mark.parametrize(
    ("variables", "region"),
    [
        ({}, "us-east-1"),
        ({"AWS_DEFAULT_REGION": "garage"}, "garage"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "garage"}, "eu-west-1"),
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "garage"}, "garage"),
    ],
)
def test_a_new_bucket_is_in_the_region_of_all_requests(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], region: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with store(lambda *_: FINE) as server:
        ensure(replace(server.target, region=""))
        resolve(replace(server.target, region=""))
    assert {seen[2] for seen in server.seen} == {region}
    (body,) = (seen[3] for seen in server.seen if seen[0] == "PUT")
    assert (f"<LocationConstraint>{region}<" in body) is (region != "us-east-1")


def test_a_region_that_is_no_location_is_left_out() -> None:
    def script(method: str, path: str, region: str, body: str) -> Answer:
        del path, region
        return (400, "InvalidLocationConstraint", "") if method == "PUT" and body else FINE

    with store(script) as server:
        ensure(Target(bucket="b", endpoint_url=server.target.endpoint_url, region="default"))
    assert [bool(seen[3]) for seen in server.seen] == [True, False]


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf[default]\naws_access_key_id = k\n", b"\xff\xfea"]
)
def test_a_file_of_keys_that_cannot_be_parsed_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "credentials").write_bytes(content)
    for name in KEYS:
        monkeypatch.delenv(name)
    with store(lambda *_: FINE) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.target.endpoint_url)
        with pytest.raises(StoreError) as caught:
            resolve(Target(bucket="b"))
        assert str(tmp_path / "credentials") in str(caught.value)
        # It is no answer of AWS, and no endpoint would help.
        assert "does not answer" not in str(caught.value)
        assert "--endpoint-url" not in (caught.value.hint or "")
        assert "credentials" in str(refusal(server))


@pytest.mark.parametrize("answer", [(403, "AccessDenied", ""), (400, "NotImplemented", "")])
def test_objects_are_deleted_without_the_list_of_uploads(answer: Answer) -> None:
    def script(method: str, path: str, region: str, body: str) -> Answer:
        del region, body
        missing: Answer = (404, "NoSuchKey", "")
        return answer if "uploads" in path else FINE if method == "HEAD" else missing

    with store(script) as server, closing(Bucket(server.target)) as bucket:
        assert bucket.uploads("p/") is None
        deleted = delete(server.target, [f"sbench/{'0' * 32}.5"])
    assert not deleted.lists_uploads
    assert any(seen[0] == "GET" and ".5" in seen[1] for seen in server.seen)


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidRequest"])
def test_objects_that_stay_are_of_the_run(tmp_path: Path, code: str) -> None:
    """Not deleted without the right to it, or before the end of a retention."""

    def script(method: str, path: str, region: str, body: str) -> Answer:
        del region, body
        if method == "DELETE" or "?delete" in path or "uploads" in path:
            return 403, code, "<Message>no</Message>"
        if "list-type=2" not in path:
            return 200, "", ""
        size = "<Size>5</Size><ETag>e</ETag><LastModified>2026-11-29T00:00:00.000Z</LastModified>"
        keys = [urlsplit(p).path.removeprefix("/b/") for m, p, *_ in server.seen if m == "PUT"]
        listed = "".join(f"<Contents><Key>{key}</Key>{size}</Contents>" for key in keys)
        return 200, "", LIST.replace("<IsTruncated>", f"{listed}<IsTruncated>")

    with store(script) as server:
        sbench = Sbench(tmp_path, KEYS)
        flags = ("--endpoint-url", server.target.endpoint_url, "--bucket", "b", "--name", "w")
        assert sbench("write", "--number", 2, "--size", 5, *flags, "--executor", "inline").code == 0
        cleaned = sbench("clean", "w")
    assert (cleaned.code, "not of this run" in cleaned.out + cleaned.err) == (6, False)
    assert code in cleaned.err, cleaned


@pytest.mark.parametrize("client_name", clients_without("own_attempts", "one_store"))
def test_the_path_of_an_endpoint_is_kept_by_every_client(client_name: str) -> None:
    with store(lambda *_: FINE) as server:
        target = Target(
            bucket="bucket", client=client_name, endpoint_url=f"{server.target.endpoint_url}/v1/s3"
        )
        if client_name == "minio":
            with pytest.raises(UsageError):
                open_client(target, Transfer())
            return
        with closing(open_client(target, Transfer())) as client:
            client.put(f"{'0' * 32}.5", RangeOf(f"{'0' * 32}.5", 0, 5), PatientMeter())
        resolve(Target(bucket="bucket", endpoint_url=f"{server.target.endpoint_url}/v1/s3"))
    assert all(seen[1].startswith("/v1/s3/bucket") for seen in server.seen), server.seen
