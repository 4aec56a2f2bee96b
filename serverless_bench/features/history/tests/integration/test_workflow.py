"""The workflow of the example, typed: the commands of its steps, in their order."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from serverless_bench.features.history.folder import History
from tests.commands.command import Sbench

WORKFLOW: Final = Path(__file__).parents[5] / "examples" / "history-workflow.yml"
SMALLEST: Final = {
    "JOB": "write --executor inline --number 1 --size 100KB",
    "SBENCH_BLOCKS": "6",
    "SBENCH_WARM_UP_BLOCKS": "0",
    "GITHUB_SHA": "0123abc",
    "GITHUB_STEP_SUMMARY": "summary.md",
}
"""Replacements for values from GitHub, and for a job that takes minutes."""


@pytest.fixture(scope="module")
def workflow() -> Any:
    return yaml.safe_load(WORKFLOW.read_text())


def test_it_is_a_workflow(workflow: Any) -> None:
    # YAML parses the key `on` as a boolean.
    assert set(workflow) == {"name", True, "permissions", "env", "jobs"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    assert set(workflow["env"]) <= set(SMALLEST)


def type_step(workflow: Any, job: str, name: str, sbench: Sbench) -> bool:
    """Type a step as GitHub does, in the directory of the test; tell whether it would succeed."""
    (script,) = [each["run"] for each in workflow["jobs"][job]["steps"] if each.get("name") == name]
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=sbench.directory,
        env={**os.environ, **sbench.environment, **SMALLEST},
        capture_output=True,
        text=True,
        check=False,
    )
    # The shell's test of the exit code returns 1; any other failure has a code of its own.
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    assert "sbench: " not in done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode == 0


def test_its_steps_run_as_they_stand(workflow: Any, sbench: Sbench) -> None:
    here = sbench.directory
    for side in ("old", "new"):
        command = here / side / "bin" / "sbench"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m serverless_bench "$@"\n')
        command.chmod(0o755)
    subprocess.run(["git", "init", "--quiet"], cwd=here, check=True)
    (here / ".gitignore").write_text("old\nnew\nsbench-runs\nsummary.md\n")
    is_green = type_step(workflow, "check", "check", sbench)
    interleaved = (here / "summary.md").read_text()
    # Such a small job may have either verdict.
    assert is_green == (not interleaved.startswith("### regressed: "))
    assert interleaved.startswith("### ")
    assert "6 runs of the new version in turns against as many of the old one" in interleaved
    assert type_step(workflow, "record", "record", sbench)
    assert type_step(workflow, "push", "commit", sbench)
    against = (here / "summary.md").read_text().removeprefix(interleaved)
    assert "3 new runs against 0 recorded runs of 0 sessions" in against
    assert "undecided" in against
    listed = ["git", "ls-files", ".sbench-history"]
    kept = subprocess.run(listed, cwd=here, capture_output=True, text=True, check=True)
    assert len(kept.stdout.splitlines()) == 3
    history = History(here / ".sbench-history")
    (key,) = history.keys()
    assert {run.label for run in history.runs(key)} == {"0123abc"}
    assert {run.job["store"] for run in history.runs(key)} == {"seaweedfs here"}
