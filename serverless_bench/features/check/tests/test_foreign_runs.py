"""Runs of other users, whose plugins need not be installed here."""

import json
from pathlib import Path

import pytest

from tests.commands.command import Call
from tests.data.runs import S, forge, operation, outcome, record, saved


@pytest.mark.parametrize("field", ["workload", "executor"])
def test_a_run_is_checked_without_the_plugin_of_its_job(
    field: str, call: Call, tmp_path: Path
) -> None:
    run = saved(tmp_path / "run", [outcome(record(0, [operation(end_ns=S)]))])
    header = json.loads((run.path / "run.json").read_bytes())
    header["job"][field] = "of-another-package"
    forge(run.path, header)
    code, out, err = call("check", str(run.path))
    assert "unknown" not in err
    assert code != 3
    assert "self-checks passed" in out
