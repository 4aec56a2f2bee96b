"""Signatures agree with botocore's."""

from typing import Any, cast
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3ExpressAuth, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import sigv4
from serverless_bench.clients.sigv4 import UNSIGNED_PAYLOAD, Keys, Signer

HOST = "s3.example:9000"
DAY_S = 86_400

keys = st.builds(
    Keys,
    st.text("ABCDEFGHIJ234567", min_size=1),
    st.text(min_size=1).filter(lambda text: text.isprintable()),
    st.none() | st.text("abc/+=", min_size=1),
)
AMZ = ("x-amz-copy-source", "x-amz-meta-b")
names = st.sampled_from(("range", "if-none-match", "if-match", "content-md5", *AMZ))
values = st.text(st.characters(min_codepoint=32, max_codepoint=126))
queries = st.lists(
    st.tuples(st.sampled_from(["uploadId", "partNumber", "prefix", "x", "delete"]), st.text()),
    max_size=4,
).map(lambda pairs: "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs))


class TheirAuth(S3SigV4Auth):
    """botocore's signature, with our value for the hash of the body."""

    stands_for_body = UNSIGNED_PAYLOAD

    def payload(self, request: AWSRequest) -> str:
        return self.stands_for_body


@given(
    keys=keys,
    region=st.sampled_from(["us-east-1", "eu-central-1", ""]),
    method=st.sampled_from(["GET", "PUT", "POST", "HEAD", "DELETE"]),
    key=st.text(min_size=1).filter(lambda text: "\ud800" not in text),
    query=queries,
    headers=st.dictionaries(names, values, max_size=4),
    payload=st.sampled_from([UNSIGNED_PAYLOAD, "0" * 64]),
)
def test_it_signs_as_botocore_does(
    keys: Keys,
    region: str,
    method: str,
    key: str,
    query: str,
    headers: dict[str, str],
    payload: str,
) -> None:
    path = quote(f"/bucket/{key}", safe="/~")
    sent = {"host": HOST, **headers}
    auth = TheirAuth(ReadOnlyCredentials(*keys, account_id=None), "s3", region)
    auth.stands_for_body = payload
    url = f"http://{HOST}{path}" + (f"?{query}" if query else "")
    assert urlsplit(url).path == path
    theirs = AWSRequest(method=method, url=url, headers=sent)
    signer = Signer(region, HOST)
    # The hour may turn between both.
    while True:
        auth.add_auth(theirs)
        ours = dict(lines(signer.sign(keys, method, path, query, headers, payload)))
        if ours["x-amz-date"] == theirs.headers["X-Amz-Date"]:
            break
        theirs = AWSRequest(method=method, url=url, headers=sent)
    assert ours == {name.lower(): value for name, value in theirs.headers.items()}


def lines(text: str) -> list[tuple[str, str]]:
    """Return names and values of header lines."""
    assert text.endswith("\r\n")
    pairs = [line.partition(": ") for line in text.removesuffix("\r\n").split("\r\n")]
    return [(name, value) for name, _, value in pairs]


def test_requests_of_a_session_are_signed_as_botocore_does() -> None:
    """For another service, and with the token in another header."""

    class TheirSession(S3ExpressAuth):
        def payload(self, request: AWSRequest) -> str:
            return UNSIGNED_PAYLOAD

    signed_with = Keys("ASIA", "secret", "token/of+a=session")
    sent, path = {"host": HOST, "range": "bytes=0-9"}, "/bench--use1-az4--x-s3/key"
    signer = Signer("us-east-1", HOST, service="s3express", token_header="x-amz-s3session-token")
    while True:
        theirs = AWSRequest(
            method="GET", url=f"http://{HOST}{path}", headers={"host": HOST, **sent}
        )
        credentials = ReadOnlyCredentials(*signed_with, account_id=None)
        signs = TheirSession(
            credentials, "s3express", "us-east-1", identity_cache=cast("Any", None)
        )
        signs.add_auth(theirs)
        ours = dict(lines(signer.sign(signed_with, "GET", path, "", {"range": "bytes=0-9"})))
        # The second may turn between both.
        if ours["x-amz-date"] == theirs.headers["X-Amz-Date"]:
            break
    assert ours == {name.lower(): value for name, value in theirs.headers.items()}


def test_the_cache_is_for_one_second_and_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 1_000_000 * DAY_S * NS_PER_S // 100
    monkeypatch.setattr(sigv4, "wall_ns", lambda: now_ns)
    old, new = Keys("A", "s"), Keys("A", "renewed")
    kept = Signer("us-east-1", HOST)

    def signed(keys: Keys) -> dict[str, str]:
        made = dict(lines(kept.sign(keys, "GET", "/b/k", "")))
        anew = Signer("us-east-1", HOST).sign(keys, "GET", "/b/k", "")
        assert made == dict(lines(anew))
        assert made["x-amz-date"] == utc_stamp(now_ns)
        return made

    seen = [signed(old), signed(new)]
    for step_s in (1, DAY_S):
        now_ns += step_s * NS_PER_S
        seen += [signed(old), signed(new)]
    assert len({one["authorization"] for one in seen}) == len(seen)
