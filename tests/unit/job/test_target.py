"""Location of objects: a bucket's name, or a URL with the protocol of its store."""

import json
from dataclasses import asdict

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.job.target import StoreProtocol, Target, parse_bucket
from tests.tables import each_row


@each_row(
    ("text", "found"),
    [
        ("", (StoreProtocol.S3, "", "")),
        ("mine", (StoreProtocol.S3, "mine", "")),
        ("s3://mine", (StoreProtocol.S3, "mine", "")),
        ("az://mine", (StoreProtocol.AZ, "mine", "")),
        ("az://mine/", (StoreProtocol.AZ, "mine", "")),
        ("gs://mine/a/b/", (StoreProtocol.GS, "mine", "a/b/")),
        # Some settings are a name with a prefix after a slash, so the caller has to check the name.
        ("a/b", (StoreProtocol.S3, "a/b", "")),
    ],
)
def test_a_bucket_is_a_name_or_a_url(text: str, found: tuple[StoreProtocol, str, str]) -> None:
    assert parse_bucket(text) == found


@each_row("text", ["wasb://mine", "AZ://mine", "://mine", "az://", "az:///a"])
def test_any_other_url_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a URL of a bucket|has no bucket"):
        parse_bucket(text)


def test_unset_values_are_the_protocols_own() -> None:
    here, there = Target(bucket="b"), Target(bucket="b", protocol=StoreProtocol.AZ, prefix="p/")
    assert (here.client, here.region, here.bucket_name, here.url) == (
        *("wire", "us-east-1"),
        *("b", "s3://b/sbench/"),
    )
    assert (there.client, there.region, there.bucket_name, there.url) == (
        *("obstore", ""),
        *("az://b", "az://b/p/"),
    )


def test_a_target_crosses_machines_as_json() -> None:
    target = Target(bucket="b", protocol=StoreProtocol.AZ)
    assert Target(**json.loads(json.dumps(asdict(target)))) == target
