"""Examples for tests of all commands, workloads and figures."""

from typing import Final

from serverless_bench.features.aws.cloudwatch import CloudWatchMetrics
from tests.house.examples import Command

COMMANDS: Final = {
    "aws": Command(("stack", "--copies", "2"), 0, [("stack", "sbench-runs/stack")]),
}
PARTS: Final = {"cloudwatch": CloudWatchMetrics}
SECTIONS: Final = {"CloudWatchMetrics": "cloudwatch"}
