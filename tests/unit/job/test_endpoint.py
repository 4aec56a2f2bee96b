"""Valid endpoints, and allowed redirects of a signed request."""

from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.session import Session
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.clients.base import is_virtual
from serverless_bench.job.endpoint import is_aws, parse_endpoint, redirected, zonal_endpoint
from serverless_bench.job.target import Addressing
from tests.tables import each_row

AWS = "https://s3.us-east-1.amazonaws.com"
STORE = "https://store.example:9000"


@pytest.mark.parametrize(
    ("url", "whether"),
    [
        (AWS, True),
        ("https://s3.amazonaws.com", True),
        ("https://s3-us-west-2.amazonaws.com", True),
        ("https://s3.dualstack.eu-west-1.amazonaws.com:443", True),
        ("https://s3express-use1-az4.us-east-1.amazonaws.com", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("https://s3.eusc-de-east-1.amazonaws.eu", True),
        ("https://s3.dualstack.eusc-de-east-1.amazonaws.eu", True),
        ("https://s3.eusc-de-east-1.amazonaws.eu.evil.example", False),
        ("http://s3.us-east-1.amazonaws.com", False),
        ("https://s3.us-east-1.amazonaws.com:8443", False),
        ("https://s3.us-east-1.amazonaws.com.evil.example", False),
        ("https://evil.example/.s3.us-east-1.amazonaws.com", False),
        ("https://user@s3.us-east-1.amazonaws.com", False),
        # Customers have names below that domain, too.
        ("https://ec2-203-0-113-1.compute-1.amazonaws.com", False),
        ("https://x.execute-api.us-east-1.amazonaws.com", False),
        ("https://mine.s3.us-east-1.vpce.amazonaws.com", False),
    ],
)
def test_which_addresses_are_amazons(url: str, *, whether: bool) -> None:
    assert is_aws(url) is whether


@each_row(
    ("url", "output", "region", "there"),
    [
        (AWS, None, "eu-west-1", "https://s3.eu-west-1.amazonaws.com"),
        (AWS, "https://s3-eu-west-1.amazonaws.com", None, "https://s3-eu-west-1.amazonaws.com"),
        # The host's name contains the region.
        (AWS, "https://s3.eusc-de-east-1.amazonaws.eu", None, None),
        (AWS, None, "evil.example/", None),
        (AWS, None, "eu\r\nx: y", None),
        (AWS, "https://evil.example", "eu-west-1", None),
        (AWS, "http://s3-eu-west-1.amazonaws.com", None, None),
        (AWS, "https://s3.cn-north-1.amazonaws.com.cn", None, None),
        (AWS, "https://s3.us-east-1.amazonaws.com:8443", None, None),
        (STORE, None, "eu-west-1", STORE),
        (STORE, "https://STORE.example:9000", None, STORE),
        (STORE, "https://store.example", None, None),
        (STORE, "http://store.example:9000", None, None),
        (STORE, "https://store.example:9001", None, None),
        (STORE, "https://other.example:9000", None, None),
        (STORE, AWS, None, None),
        (STORE, "https://me@store.example:9000", None, None),
        (STORE, "https://[store", None, None),
        (STORE, "https://store.example:x", None, None),
        ("https://store.example", "https://store.example:443", None, "https://store.example"),
    ],
)
def test_a_signature_is_sent_to_no_other_host(
    url: str, output: str | None, region: str | None, there: str | None
) -> None:
    assert redirected(url, output, "us-east-1", region) == there


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1"])
def test_every_partition_has_its_own_domain_and_the_bucket_in_the_host(region: str) -> None:
    """Compared with Amazon's own library."""
    config = Config(signature_version=UNSIGNED)
    client: Any = Session().create_client("s3", region_name=region, config=config)
    url = client.generate_presigned_url("get_object", Params={"Bucket": "bkt", "Key": "k"})
    host = url.removeprefix("https://bkt.").removesuffix("/k")
    domain = client.meta.endpoint_url.partition(".amazonaws.")[2]
    assert is_aws(f"https://{host}")
    assert is_virtual(Addressing.AUTO, host, "b")
    assert not is_virtual(Addressing.AUTO, host, "b.c")
    assert zonal_endpoint("z-az1", region) == f"https://s3express-z-az1.{region}.amazonaws.{domain}"


@given(st.text(), st.none() | st.text())
def test_redirects_are_only_followed_to_the_same_store(host: str, region: str | None) -> None:
    for output in (host, f"https://{host}"):
        assert redirected(STORE, output, "us-east-1", region) in {None, STORE}


@each_row(
    "url",
    [
        "http://user:hunter2@store",
        "ftp://user:hunter2@store",
        "http://user:hunter2@store:port",
        "hunter2@store",
        "http://store/path@hunter2",
    ],
)
def test_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="contains a user or a password") as caught:
        parse_endpoint(url)
    assert "hunter2" not in f"{caught.value}{caught.value.hint}"


@each_row(
    "url",
    ["http://a b", "http://a\n.b", "http://a\t.b", "http://\x1b[2Jb", 'http://a"b', "http://ä"],
)
def test_an_endpoint_only_has_characters_of_hosts(url: str) -> None:
    with pytest.raises(UsageError, match="is not a URL"):
        parse_endpoint(url)


@each_row("path", ["/?X-Amz-Signature=MARKED", "?MARKED", "/b?a#MARKED", "#MARKED"])
@each_row("start", ["http://127.0.0.1:9", "ftp://h", "http://h:x", "127.0.0.1"])
def test_a_query_is_not_repeated(start: str, path: str) -> None:
    """A presigned URL has a signature in it."""
    with pytest.raises(UsageError) as refused:
        parse_endpoint(start + path)
    assert "MARKED" not in f"{refused.value}{refused.value.hint}"
    assert start in str(refused.value)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://h:80", "http://h"),
        ("https://h:443/", "https://h"),
        ("http://h:443", "http://h:443"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://h/storage/v1/s3/", "https://h/storage/v1/s3"),
        ("https://h:443/s3", "https://h/s3"),
    ],
)
def test_default_ports_are_left_out_and_paths_are_kept(text: str, url: str) -> None:
    assert parse_endpoint(text) == url


def test_a_host_without_a_scheme_has_a_hint() -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoint("127.0.0.1:9000")
    assert "http://127.0.0.1:9000" in caught.value.hint
