"""Workflows for GitHub Actions: third-party code that they run, and its permissions."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documents.quoted import ROOT

WORKFLOWS = [
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
    ROOT / "examples" / "history-workflow.yml",
]
USES = re.compile(r"uses: (\S+)")
PINNED = re.compile(r"uses: ([a-z-]+/[a-z-]+)@([0-9a-f]{40}) # (v[0-9]+\.[0-9]+\.[0-9]+)")
"""A commit, which cannot be moved like a tag, and its version."""
OWN_TOOLS = {"gh", "git"}
"""Programs of the runner, which a job with write permission may run."""
PUBLISHING = {"pages": "write", "id-token": "write"}
"""Permissions of the job that publishes the site."""

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield each job with the permissions that it has."""
    workflow = yaml.safe_load(path.read_text())
    # Without permissions in the file, a token has those of the repository's settings.
    usual = workflow["permissions"]
    for job in workflow["jobs"].values():
        yield job.get("permissions", usual), job


def test_an_action_is_pinned_by_its_commit_and_the_same_everywhere() -> None:
    texts = [path.read_text() for path in WORKFLOWS]
    assert [len(USES.findall(text)) for text in texts] == [
        len(PINNED.findall(text)) for text in texts
    ]
    pins = {found for text in texts for found in PINNED.findall(text)}
    assert len(pins) == len({action for action, _, _ in pins})


@every_workflow
def test_a_job_that_may_write_runs_no_package(path: Path) -> None:
    for permissions, job in jobs(path):
        assert set(permissions) <= {"contents"} or permissions == PUBLISHING
        if "write" not in permissions.values():
            continue
        lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
        commands = [command for line in lines for command in line.split(" && ")]
        assert {command.split()[0] for command in commands} <= OWN_TOOLS


@every_workflow
def test_jobs_that_run_packages_find_no_token_in_the_checkout(path: Path) -> None:
    for permissions, job in jobs(path):
        checkouts = [s for s in job["steps"] if s.get("uses", "").startswith("actions/checkout@")]
        if "write" not in permissions.values():
            assert checkouts
            assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@every_workflow
def test_packages_are_installed_with_their_hashes(path: Path) -> None:
    # Our own packages are installed with hashes, too: the Makefile does it.
    for line in re.findall(r"pip install .*", path.read_text()):
        assert line.startswith("pip install --require-hashes ")


def test_every_supported_python_is_tested_and_one_of_them_with_everything() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = (re.fullmatch(r".*Python :: (3\.[0-9]+)", name) for name in project["classifiers"])
    supported = [match[1] for match in named if match]
    made = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    runs = {name: [s["run"] for s in job["steps"] if "run" in s] for name, job in made.items()}
    assert runs == {"all": [".ci/run"], "fast": ["make fast"]}
    oldest = made["all"]["steps"][-1]["env"]["PYTHON"].removeprefix("python")
    assert [oldest, *made["fast"]["strategy"]["matrix"]["python"]] == supported
