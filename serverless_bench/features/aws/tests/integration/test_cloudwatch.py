"""CloudWatch's metrics of a run; moto has the role of CloudWatch."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.aws.cloudwatch import FILE
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Outcome
from tests.clouds.aws_clients import open_client
from tests.clouds.lambda_hosts import NAME, LambdaHost
from tests.clouds.places import host as host
from tests.clouds.places import store as store
from tests.commands.command import Sbench
from tests.data import runs
from tests.house.members import uses
from tests.reference.report import reference
from tests.stores.servers import Server, credentials

MINUTE_NS = 60 * NS_PER_S
DAY_NS = 24 * 60 * MINUTE_NS
READ = ("aws", "cloudwatch", "run", "--run-dir", ".")
ARN = "arn:aws:lambda:us-east-1:123456789012:function:"


@pytest.fixture
def environment(moto: Server) -> Iterator[Mapping[str, str]]:
    variables = {**moto.environment, "AWS_ENDPOINT_URL_CLOUDWATCH": moto.endpoint_url}
    with credentials(variables):
        yield variables


def count(moto: Server, metric: str, at_ns: int, value: float, function: str = "") -> None:
    """Count as Lambda does for a function, or for the account."""
    client = open_client("cloudwatch", region_name="us-east-1", endpoint_url=moto.endpoint_url)
    dimensions = [{"Name": "FunctionName", "Value": function}] if function else []
    datum = {"MetricName": metric, "Timestamp": at_ns // NS_PER_S, "Value": value}
    client.put_metric_data(Namespace="AWS/Lambda", MetricData=[{**datum, "Dimensions": dimensions}])


def save(path: Path, *functions: str, age_ns: int, minutes: int = 2) -> int:
    """Save a run that lasted so long, and return the beginning of its first minute."""
    created_ns = wall_ns() - age_ns
    created_ns -= created_ns % MINUTE_NS
    target = Target(bucket="b", endpoint_url="https://s3.us-east-1.amazonaws.com")
    job = replace(
        runs.job(number=1),
        target=replace(target, region="us-east-1"),
        executor="lambda",
        options={"function": functions} if functions else {},
    )
    done = Outcome(
        submitted_ns=created_ns,
        collected_ns=created_ns + minutes * MINUTE_NS - NS_PER_S,
        result=replace(runs.record(0, [runs.operation()]), delivery="d"),
    )
    runs.saved(path, [done], of=job, created_ns=created_ns)
    return created_ns


def test_metrics_of_all_functions_are_added_and_shown_in_reports(
    sbench: Sbench, moto: Server, environment: Mapping[str, str]
) -> None:
    begin_ns = save(sbench.directory / "run", "one", f"{ARN}two:live", age_ns=10 * MINUTE_NS)
    for function, throttles, first, second in (("one", 3, 400, 500), ("two", 9, 300, 250)):
        # What happened before and after the run does not count.
        for minute, executions in ((-1, 10_000), (0, first), (1, second), (2, 10_000)):
            at_ns = begin_ns + minute * MINUTE_NS
            count(moto, "ConcurrentExecutions", at_ns, executions, function)
        count(moto, "Throttles", begin_ns - NS_PER_S, 1000, function)
        count(moto, "Throttles", begin_ns + MINUTE_NS, throttles, function)
    count(moto, "ConcurrentExecutions", begin_ns, 1200)
    before = sbench("report", "run", "--run-dir", ".")
    assert "; sbench aws cloudwatch run" in before.out
    done = sbench(*READ, **environment)
    assert (done.code, done.err) == (0, "")
    assert done.out == "12 throttles; 750 executions at once, 1,200 in the account\n"
    metrics = sbench(*READ, "--format", "json", **environment).json
    assert metrics.pop("read_after_s") > 400
    assert metrics == {
        "throttles": 12,
        "concurrent_executions": 750,
        "account_concurrent_executions": 1200,
        "minutes": 2,
    }
    # No report asks CloudWatch.
    shown = sbench("report", "run", "--run-dir", ".")
    assert f"CloudWatch  {done.out.strip()}" in shown.out
    assert "sbench aws cloudwatch" not in shown.out
    report = sbench("report", "run", "--run-dir", ".", "--format", "json").json
    assert report["cloudwatch"] == reference(sbench.directory / "run")["cloudwatch"]
    assert report["cloudwatch"]["throttles"] == 12


@uses("feature lambda_host")
def test_a_run_is_read_at_once_and_says_that_metrics_may_be_missing(
    sbench: Sbench, moto: Server, host: LambdaHost, store: str, environment: Mapping[str, str]
) -> None:
    where = ("--endpoint-url", store, "--bucket", "b", "--executor", "lambda", "--function", NAME)
    wrote = sbench(
        *("write", *where, "--number", 2, "--size", "4KiB", "--name", "run", "--run-dir", "."),
        **host.environment,
    )
    assert wrote.code == 0, wrote.err
    early = sbench(*READ, "--wait", "0s", **environment)
    assert early.code == 4
    (line, hint) = early.err.splitlines()
    assert f"CloudWatch has no metrics of '{NAME}'" in line
    assert "in a few minutes" in hint
    assert not (sbench.directory / "run" / FILE).exists()
    count(moto, "ConcurrentExecutions", wall_ns(), 2, NAME)
    done = sbench(*READ, "--wait", "0s", **environment)
    assert done.code == 0, done.err
    assert done.out.startswith("0 throttles; 2 executions at once")
    assert "; incomplete, read " in done.out


@pytest.mark.parametrize(
    ("functions", "days", "problem"),
    [((), 0, "invoked no functions on Lambda"), (("f",), 16, "ended 16 days ago")],
)
def test_a_run_without_metrics_is_refused(
    sbench: Sbench, functions: tuple[str, ...], days: int, problem: str
) -> None:
    save(sbench.directory / "run", *functions, age_ns=days * DAY_NS + 10 * MINUTE_NS)
    done = sbench(*READ)
    assert done.code == 2
    assert problem in done.err


@pytest.mark.parametrize("content", ["[]", '{"throttles": 1}', '{"throttles": "many", "minutes'])
def test_a_file_without_metrics_is_left_out(sbench: Sbench, content: str) -> None:
    save(sbench.directory / "run", "f", age_ns=MINUTE_NS)
    (sbench.directory / "run" / FILE).write_text(content)
    done = sbench("report", "run", "--run-dir", ".", "--format", "json")
    assert done.code == 0, done.err
    assert "cloudwatch" not in done.json
