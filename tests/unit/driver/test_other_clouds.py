"""Buckets of other protocols than S3's: supported settings, and refused ones."""

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.driver.checked_job import check_job
from serverless_bench.job.target import StoreProtocol
from tests.commands.command import Call
from tests.house.members import uses

WRITE = {"workload": "write", "bucket": "az://mine", "number": 1, "size": "1KiB"}


@uses("client obstore", "feature azure")
def test_obstore_moves_the_bytes_there() -> None:
    checked = check_job(WRITE)
    assert (checked.job.target.bucket, checked.job.target.protocol) == ("mine", StoreProtocol.AZ)
    assert checked.job.target.client == "obstore"
    assert check_job({**WRITE, "bucket": "s3://mine"}).job.target.client == "wire"


@uses("client obstore", "executor lambda", "feature azure")
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--client", "wire"], "--client wire does not speak az://\nhint: --client obstore"),
        *(
            (["--client", name], f"--client {name} does not speak az://")
            for name in CLIENTS
            if name not in {"obstore", "wire"}
        ),
        (["--region", "eu"], "--region does not apply to az://"),
        (["--part-size", "5MiB"], "does not offer multipart"),
        (["--client-option", "checksum=sha256"], "no option 'checksum' for az://"),
        (["--client-option", "payload_signing=unsigned"], "no option 'payload_signing' for az://"),
        (["--executor", "lambda", "--stack", "s"], "the deployed function does not speak az://"),
        (["--bucket", "az://mine/a"], "--bucket 'az://mine/a' goes on behind the bucket"),
        (["--bucket", "az://"], "'az://' has no bucket"),
        (["--bucket", "wasb://mine"], "use one of s3://, az://, gs://"),
        (["--executor", "lambda", "--control-prefix", "az://c"], "'az://c' is no prefix"),
        (["--bucket", "az://mine"], "no storage account is set"),
    ],
)
def test_unsupported_settings_are_refused_in_a_line(
    call: Call, flags: list[str], text: str
) -> None:
    code, out, err = call("write", "--bucket", "az://mine", "--size", "1KiB", *flags)
    assert (code, out) == (2, "")
    assert text in err
    assert len(err.splitlines()) <= 2


@uses("client obstore", "feature azure", "workload array")
def test_array_libraries_are_opened_for_s3_alone(call: Call) -> None:
    code, _, err = call("array", "write", "--bucket", "az://mine")
    assert (code, "array libraries are opened for S3 only" in err) == (2, True)
