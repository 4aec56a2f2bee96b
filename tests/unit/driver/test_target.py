"""The measured host of a bucket."""

import pytest

from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_a_bucket_is_reached_in_its_region(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    client = open_s3(Target(bucket="b", region=region))
    assert client.meta.endpoint_url == f"https://s3.{region}.amazonaws.com"
    client.close()
