"""Buckets of other protocols than S3's: supported settings, and refused ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.checked_job import check_job
from serverless_bench.features.cost.budget import Budget
from serverless_bench.features.cost.limit import cost_limit
from serverless_bench.features.cost.outlook import plan
from serverless_bench.features.cost.prices import is_on_s3
from serverless_bench.features.remote.driver import parse_prefix
from serverless_bench.job.target import StoreProtocol
from tests.commands.command import Call
from tests.house.members import uses

AZ, S3 = StoreProtocol.AZ, StoreProtocol.S3
WRITE = {"workload": "write", "bucket": "az://mine", "number": 1, "size": "1KiB"}


@uses("client obstore")
def test_obstore_moves_the_bytes_there() -> None:
    checked = check_job(WRITE)
    assert (checked.job.target.bucket, checked.job.target.protocol) == ("mine", AZ)
    assert checked.job.target.client == "obstore"
    assert check_job({**WRITE, "bucket": "s3://mine"}).job.target.client == "wire"


@uses("client obstore", "executor lambda")
@pytest.mark.parametrize(
    ("flags", "said"),
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
        (["--executor", "lambda", "--stack", "s"], "the deployed function has the client 'wire'"),
        (["--bucket", "az://mine/a"], "--bucket 'az://mine/a' goes on behind the bucket"),
        (["--bucket", "az://"], "'az://' has no bucket"),
        (["--bucket", "wasb://mine"], "use one of s3://, az://, gs://"),
        (["--executor", "lambda", "--control-prefix", "az://c"], "'az://c' is no prefix"),
        (["--bucket", "az://mine"], "no storage account is set"),
    ],
)
def test_unsupported_settings_are_refused_in_a_line(
    call: Call, flags: list[str], said: str
) -> None:
    code, out, err = call("write", "--bucket", "az://mine", "--size", "1KiB", *flags)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 2


@uses("workload array")
def test_array_libraries_are_opened_for_s3_alone(call: Call) -> None:
    code, _, err = call("array", "write", "--bucket", "az://mine")
    assert (code, "array libraries are opened for S3 only" in err) == (2, True)


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


@uses("client obstore", "executor lambda")
def test_runs_on_other_clouds_have_no_cost(call: Call) -> None:
    checked = check_job({**WRITE, "executor": "lambda", "function": "mine"})
    target = replace(checked.job.target, bucket="mine", endpoint_url="https://x.example")
    job = replace(checked.job, target=target, control=target)
    assert not is_on_s3(job)
    with pytest.raises(UsageError, match="no prices for az://mine") as caught:
        Budget(job, cost_limit("lambda", max_cost=1.0))
    assert "`prices` FILE" in caught.value.hint
    with pytest.raises(UsageError, match="no prices for az://mine"):
        plan(job)
    code, prices, _ = call("plan", "--show-prices")
    assert code == 0
    Path("prices.toml").write_text(prices)
    assert plan(job, prices="prices.toml").dollars_at_most > 0
