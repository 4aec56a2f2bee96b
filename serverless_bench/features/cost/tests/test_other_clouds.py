"""Buckets of other protocols than S3's have no prices here."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.checked_job import check_job
from serverless_bench.features.cost.budget import Budget
from serverless_bench.features.cost.limit import cost_limit
from serverless_bench.features.cost.outlook import plan
from serverless_bench.features.cost.prices import is_on_s3
from tests.commands.command import Call
from tests.house.members import uses

WRITE = {"workload": "write", "bucket": "az://mine", "number": 1, "size": "1KiB"}


@uses("client obstore", "executor lambda", "feature azure")
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
