"""CloudWatch's metrics of the functions of a run: throttles, and concurrent executions.

Lambda also throttles events that it has accepted, which a driver cannot see. It counts by function
and minute, and its metrics arrive minutes after a run: ``sbench aws cloudwatch`` saves them in a
file of the run directory, and reports show them from there.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import msgspec

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.aws.options import FunctionOptions, region_of_functions
from serverless_bench.metrics.part import Part, Position, Reduced, Rows
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.files import open_file, replacing
from serverless_bench.rundir.run import Run

FILE: Final = "cloudwatch.json"
_LATE_S: Final = 180.0
"""Time after the end of a run at which all of its metrics have arrived: assumed."""
_MINUTE_S: Final = 60
_KEPT_DAYS: Final = 15
"""Age up to which CloudWatch has metrics by minute (CloudWatch API reference, GetMetricData)."""
_MOST_BYTES: Final = 64 * 1024


class CloudWatchMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of the functions of a run; figures.toml defines each field."""

    throttles: int
    concurrent_executions: int
    account_concurrent_executions: int | None
    minutes: int
    read_after_s: float


def ended_ns(run: Run) -> int:
    """Return the time at which the driver had the last result of a function, on its clock."""
    return int(run.functions["collected_ns"].max(initial=run.created_ns))


def read_metrics(run: Run) -> CloudWatchMetrics:
    """Read the metrics of a run, and save them in its directory.

    Raises
    ------
    UsageError
        If it invoked no deployed functions, or is too old.
    ExecutorError
        If CloudWatch refuses, does not respond, or has no metrics of the functions.
    """
    names = FunctionOptions.from_work(run.job).function
    if not names:
        raise UsageError(
            f"{run.path} invoked no functions on Lambda", hint="sbench write --executor lambda"
        )
    begin_s, end_s = run.created_ns // NS_PER_S // _MINUTE_S * _MINUTE_S, ended_ns(run) // NS_PER_S
    after_s = max(0.0, wall_ns() / NS_PER_S - end_s)
    if (days := after_s // 86400) >= _KEPT_DAYS:
        raise UsageError(
            f"{run.path} ended {days:.0f} days ago",
            hint=f"CloudWatch keeps metrics by minute for {_KEPT_DAYS} days",
        )
    minutes = (end_s - begin_s) // _MINUTE_S + 1
    values = _read(region_of_functions(run.job), names, begin_s, begin_s + minutes * _MINUTE_S)
    if not values["functions"]:
        raise ExecutorError(
            f"CloudWatch has no metrics of {', '.join(map(repr, names))} in that time",
            hint="try again in a few minutes; functions of `sbench lambda-host` have none",
        )
    account = values["account"].values()
    metrics = CloudWatchMetrics(
        throttles=round(sum(values["throttles"].values())),
        concurrent_executions=round(max(values["functions"].values())),
        account_concurrent_executions=round(max(account)) if account else None,
        minutes=minutes,
        read_after_s=after_s,
    )
    with replacing(run.path / FILE) as file:
        file.write(msgspec.json.encode(metrics))
    return metrics


def _read(
    region: str, names: Sequence[str], begin_s: int, end_s: int
) -> Mapping[str, Mapping[Any, float]]:
    """Return the values of each metric by minute, added over the functions."""
    # Reports need none of these.
    from serverless_bench.features.aws.account import unqualified
    from serverless_bench.features.aws.client import explained, open_client

    queries = [_query("account", 0, "ConcurrentExecutions", "Maximum")]
    for number, name in enumerate(names):
        dimension = {"Name": "FunctionName", "Value": unqualified(name).rpartition(":")[2]}
        queries += [
            _query("throttles", number, "Throttles", "Sum", dimension),
            _query("functions", number, "ConcurrentExecutions", "Maximum", dimension),
        ]
    values = defaultdict[str, defaultdict[Any, float]](lambda: defaultdict(float))
    client = open_client("cloudwatch", region=region)
    with closing(client), explained("cloudwatch:GetMetricData"):
        for page in client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries, StartTime=begin_s, EndTime=end_s
        ):
            for found in page["MetricDataResults"]:
                of = values[found["Id"].partition("_")[0]]
                for minute, value in zip(found["Timestamps"], found["Values"], strict=True):
                    of[minute] += value
    return values


def _query(
    kind: str, number: int, metric: str, statistic: str, *dimensions: dict[str, str]
) -> dict[str, Any]:
    """Return the query of a metric of a function, or without dimensions of the account."""
    of = {"Namespace": "AWS/Lambda", "MetricName": metric, "Dimensions": [*dimensions]}
    statistics = {"Metric": of, "Period": _MINUTE_S, "Stat": statistic}
    return {"Id": f"{kind}_{number}", "MetricStat": statistics}


def described(metrics: CloudWatchMetrics) -> str:
    """Return the metrics in a line."""
    text = (
        f"{format_count(metrics.throttles, 'throttle')};"
        f" {metrics.concurrent_executions:,} executions at once"
    )
    if metrics.account_concurrent_executions is not None:
        text += f", {metrics.account_concurrent_executions:,} in the account"
    if metrics.read_after_s < _LATE_S:
        text += f"; incomplete, read {format_seconds(metrics.read_after_s)} after the run"
    return text


class _CloudWatchPart(Part[CloudWatchMetrics]):
    name = "cloudwatch"
    after = "bad_ranges"
    option = "function"
    position = Position.LIMIT

    def compute(self, reduced: Reduced) -> CloudWatchMetrics | None:
        """Return the metrics, if they were read."""
        with (
            suppress(FileNotFoundError, msgspec.DecodeError),
            open_file(reduced.run.path / FILE) as file,
        ):
            return msgspec.json.decode(file.read(_MOST_BYTES), type=CloudWatchMetrics)
        return None

    def rows(self, figures: CloudWatchMetrics, summary: Summary) -> Rows:
        """Yield a row with the metrics."""
        yield "CloudWatch", described(figures)

    brief = rows


PART: Final = _CloudWatchPart()


def next_command(summary: Summary) -> Iterator[str]:
    """Yield the command that adds the metrics of a run on AWS, unless it was called."""
    from serverless_bench.base.escaping import for_terminal
    from serverless_bench.executors import EXECUTORS, info_of

    parts, executor = summary.parts, summary.executor
    # Loading an executor comes last: that of Lambda loads botocore.
    if (
        "deliveries" in parts
        and PART.name not in parts
        and getattr(parts.get("bill"), "on_aws", False)
        and executor in EXECUTORS
        and info_of(executor).invokes
    ):
        yield f"sbench aws cloudwatch {for_terminal(summary.argument)}"
