"""The commands that `plan` takes."""

import re

from serverless_bench.features.cost.planned_command import COMMANDS
from tests.commands.command import Call
from tests.house.members import EVERY_WORKLOAD, uses


@uses(*EVERY_WORKLOAD)
def test_the_commands_of_all_workloads_but_one_can_be_planned() -> None:
    names = (
        *("write", "read", "mixed", "columns", "shuffle", "contend", "replay", "array", "call"),
    )
    assert names == COMMANDS


@uses(*EVERY_WORKLOAD)
def test_plan_lists_all_commands_that_it_takes(call: Call) -> None:
    listed = " ".join(call("plan", "--help")[1].split()).partition("COMMAND is ")[2]
    names, _, _ = listed.partition(", followed by")
    assert set(re.findall(r"[a-z]+", names)) - {"or"} == {*COMMANDS}
    assert "\nTransfer:\n" in call("plan", "write", "--help")[1]
