"""The commands that `plan` takes."""

from serverless_bench.features.cost.planned_command import COMMANDS
from serverless_bench.job.workload import WORKLOADS
from tests.commands.command import Call


def test_the_commands_of_all_workloads_but_noop_can_be_planned(call: Call) -> None:
    assert {*COMMANDS} == {*WORKLOADS} - {"noop"}
    assert {"write", "read", "mixed"} <= {*COMMANDS}
    assert "\nTransfer:\n" in call("plan", "write", "--help")[1]


def test_a_wrong_command_is_told_those_that_can_be_planned(call: Call) -> None:
    code, _, err = call("plan", "demo")
    assert code == 2
    assert [name for name in COMMANDS if name not in err] == []
