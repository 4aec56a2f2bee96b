"""The settings of an encryption, and the requests to KMS that follow."""

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.clients.s3_http import document, encryption
from serverless_bench.driver.target import uses_kms
from serverless_bench.features.encryption.options import EncryptionOptions
from serverless_bench.job.target import Target
from tests.house.members import uses

ALGORITHM, KEY = "x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id"
RULE = "<R><SSEAlgorithm>{}</SSEAlgorithm><BucketKeyEnabled>{}</BucketKeyEnabled></R>"


@pytest.mark.parametrize(
    ("sse", "headers"),
    [
        ("", {}),
        ("AES256", {ALGORITHM: "AES256"}),
        ("aws:kms", {ALGORITHM: "aws:kms"}),
        ("aws:kms:alias/mine", {ALGORITHM: "aws:kms", KEY: "alias/mine"}),
        ("aws:kms:arn:aws:kms:r:1:key/k", {ALGORITHM: "aws:kms", KEY: "arn:aws:kms:r:1:key/k"}),
    ],
)
def test_the_headers_of_an_encryption(sse: str, headers: dict[str, str]) -> None:
    assert encryption(sse) == headers
    assert EncryptionOptions(sse=sse or None).sse == (sse or None)


@pytest.mark.parametrize("sse", ["aes256", "aws:kms:", "aws:kmskey", "AES256:k", "aws:kms:a b"])
def test_another_text_is_no_encryption(sse: str) -> None:
    with pytest.raises(UsageError, match="is no encryption"):
        EncryptionOptions(sse=sse)


@pytest.mark.parametrize(
    ("sse", "algorithm", "bucket_key", "asks"),
    [
        ("aws:kms", "AES256", "false", True),
        ("aws:kms:k", "AES256", "true", False),
        ("AES256", "aws:kms", "false", False),
        ("", "aws:kms", "false", True),
    ],
)
def test_the_encryption_decides_whether_kms_is_asked(
    sse: str, algorithm: str, bucket_key: str, *, asks: bool
) -> None:
    setting = document(RULE.format(algorithm, bucket_key).encode(), "R", "the setting")
    assert uses_kms(setting, sse) == asks


@uses("feature studies")
def test_a_cell_of_a_study_keeps_its_encryption() -> None:
    from serverless_bench.features.studies.settings import job_of

    target = Target(bucket="b", endpoint_url="http://127.0.0.1:9")
    job = job_of({"workload": "write", "mb": 1, "sse": "AES256"}, target, name="cell")
    assert job.target.sse == "AES256"
