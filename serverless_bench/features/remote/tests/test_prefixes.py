"""The place of claims and records, as a flag names it."""

import pytest

from serverless_bench.features.remote.driver import parse_prefix
from serverless_bench.job.target import StoreProtocol

AZ, S3 = StoreProtocol.AZ, StoreProtocol.S3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, (S3, None, "sbench-control/")),
        ("mine", (S3, None, "mine/")),
        ("s3://b/mine/", (S3, "b", "mine/")),
        ("az://b/mine", (AZ, "b", "mine/")),
    ],
)
def test_control_prefixes_are_parsed_as_buckets_are(
    text: str | None, found: tuple[StoreProtocol, str | None, str]
) -> None:
    assert parse_prefix(text) == found
