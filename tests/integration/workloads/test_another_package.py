"""``sbench stat``, a workload of another package, made exactly as in CONTRIBUTING.md."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.job.workload import WORKLOADS, open_workload
from serverless_bench.rundir.run import load_run
from tests.commands.command import Apart, Sbench
from tests.documents.quoted import ROOT

COMMON = {"number", "objects", "bucket", "executor", "duration", "barrier", "max-cost", "run-dir"}
"""Some flags of every job."""


@pytest.fixture
def stat(sbench: Sbench, tmp_path: Path) -> Apart:
    """The command, in a process that has the package of the page on its path."""
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("### A workload")[2]
    site = tmp_path / "site"
    for path, text in re.findall(
        r"```\w+\n# (\S+)\n(.*?)```", page.partition("\n### ")[0], re.DOTALL
    ):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    project = tomllib.loads((site / "pyproject.toml").read_text())["project"]
    info = site / "sbench_stat-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sbench_stat\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
            for group, entries in project["entry-points"].items()
        )
    )
    return replace(sbench.apart, environment={**sbench.environment, "PYTHONPATH": str(site)})


def test_it_runs_and_its_report_has_its_figures(stat: Apart, sbench: Sbench) -> None:
    made = stat("write", "--size", "4KiB", "--number", 2, "--objects", 3, "--key-file", "keys.txt")
    assert made.code == 0, made.err
    done = stat("stat", "--key-file", "keys.txt", "--format", "json", "--name", "s")
    assert done.code == 0, done.err
    report = done.json
    assert (report["workload"], report["ok"], report["failed"]) == ("stat", 6, 0)
    assert (report["bytes"], report["object_bytes"], report["corrupt_objects"]) == (0, None, 0)
    assert [row["kind"] for row in report["latencies"]["by_kind"]] == ["head"]
    operations = load_run(stat.directory / "sbench-runs" / "s").operations
    assert set(operations["kind"].tolist()) == {"head"}
    text = stat("report", "sbench-runs/s")
    assert text.code == 0, text.err
    assert "4 KiB" not in text.out
    assert "64 MiB" not in text.out
    # Without the package, a report has the same text.
    assert sbench("report", "sbench-runs/s").out == text.out


def test_it_has_the_flags_of_every_job_and_its_own_and_no_others(stat: Apart) -> None:
    assert "stat" in stat("--help").out
    shown = set(re.findall(r"--(?:no-)?([a-z][a-z-]+)", stat("stat", "--help-all").out))
    others = {name.replace("_", "-") for each in WORKLOADS for name in open_workload(each).settings}
    has = {"threads", "rate", "arrivals", "key-file", "read-times"}
    assert shown >= COMMON | has
    assert not shown & (others - has), shown & (others - has)
    refused = stat("stat", "--key-file", "keys.txt", "--chunks", "5,5")
    assert (refused.code, "--chunks" in refused.err) == (2, True)


OWN_LOAD = """
from dataclasses import dataclass
from typing import Annotated

from serverless_bench.job.workload import Load
from serverless_bench.job.meaning import Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class StatLoad(Load):
    block_size: Annotated[int, Meaning("Size of a block.")] = 1


Stat.load_type = StatLoad
"""
"""A load with a field that is called as a setting of all jobs."""


def test_a_field_of_a_load_that_is_called_as_a_setting_of_all_jobs_is_refused(stat: Apart) -> None:
    module = Path(stat.environment["PYTHONPATH"], "sbench_stat", "workload.py")
    module.write_text(module.read_text() + OWN_LOAD)
    refused = stat("stat", "--key-file", "keys.txt")
    assert refused.code == 3, refused.err
    assert "--block-size of the workload stat is a setting of all jobs" in refused.err
