"""The ten lines of the page, in a script and in the kernel of a notebook."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import serverless_bench as api
from docs.tables import HERE
from serverless_bench.rundir.run import Run
from tests.commands.command import Sbench
from tests.commands.processes import PATIENCE_S
from tests.house.members import uses
from tests.stores.servers import credentials

LINES = re.findall(r"```python\n(.*?)```", (HERE / "python.md").read_text(), re.DOTALL)[0]
"""What the page begins with."""


def test_each_line_works_in_a_script(sbench: Sbench) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINES],
        cwd=sbench.directory,
        env={**os.environ, **sbench.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("read: 4 of 4 functions ok")
    assert "\nB against A: not enough runs" in done.stdout
    assert done.stdout.endswith("deleted 8 objects, aborted 0 uploads\n")
    assert (sbench.directory / "read.png").read_bytes().startswith(b"\x89PNG")


def test_each_line_works_in_a_notebook(sbench: Sbench) -> None:
    shown = "\n".join(re.sub(r"print\((\w+)\)", r"\1", line) for line in LINES.splitlines())
    lines = [line for line in shown.splitlines() if line]
    assert len(lines) == 10
    notebook = new_notebook(cells=[new_code_cell(line) for line in [*lines, "r.plot()"]])  # type: ignore[no-untyped-call]
    client: Any = NotebookClient(
        notebook,
        timeout=round(PATIENCE_S),
        kernel_name="python3",
        resources={"metadata": {"path": str(sbench.directory)}},
    )
    with credentials(sbench.environment):
        client.execute()
    outputs = [[*cell.outputs] for cell in notebook.cells]
    # A run shows its progress, without being asked.
    assert "display_data" in [output.output_type for output in outputs[1]]
    (result,) = outputs[3]
    assert "<table>" in result.data["text/html"]
    assert "data:image/png;base64," in result.data["text/html"]
    assert result.data["text/plain"].startswith("read: 4 of 4 functions ok")
    assert "image/png" in outputs[-1][0].data


@uses("workload mixed")
def test_a_result_has_the_figures_of_the_report(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sbench.directory)
    with credentials(sbench.environment):
        made = api.mixed(
            number=2, size="64KiB", operations=40, threads=2, name="here", progress=False
        )
    assert made.path == Path("sbench-runs/here")
    report = sbench("report", "here", "--format", "json").json
    assert made.throughput == report["throughput_bytes_per_s"]
    assert made.report() == sbench("report", "here").out
    assert (made.job.load.threads, made.job.size) == (2, 65536)
    again = api.load_run("here")
    assert (again.run.run_id, again.keys(), again.summary) == (
        made.run.run_id,
        made.keys(),
        made.summary,
    )
    kinds = again.operations.groupby("kind")
    assert {*kinds.groups} >= {"get", "put"}
    latency = again.latency
    measured = again.operations[~again.operations["warmup"].astype(bool)]
    assert latency.max == pytest.approx(measured.latency_s.max())
    assert latency.p50 <= latency.p90 <= latency.p95 <= latency.p99 <= latency.p999 <= latency.max
    causes = report["bottleneck"]["functions"]
    known = bool(causes) and max(causes, key=causes.get) != "unknown"
    assert (again.bottleneck is not None) == known
    assert repr(again).startswith("<Result sbench-runs/here: mixed, 2 functions")
    with credentials(sbench.environment):
        assert again.clean().complete


def test_every_function_for_runs_takes_a_result_and_a_name(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sbench.directory)
    settings: dict[str, Any] = {"number": 2, "size": "64KiB", "progress": False}
    with credentials(sbench.environment):
        w, other = api.write(**settings, name="w"), api.write(**settings)
        r = api.read("w", number=1, objects=2, progress=False)
        assert (r.job.number, r.job.objects, r.summary.verified_bytes) == (1, 2, 131072)
        for written in (w, "w", w.path, w.run):
            assert api.summarize(written) == w.summary
            assert api.check(written).passed
            assert api.compare(written, [other]).comparisons[0].verdict == "not enough runs"
            assert int(api.timeline(written).segment_bytes.sum()) == 131072
            api.export(written, "operations.csv", format="csv")
            assert isinstance(api.resume_job(written), Run)
            assert api.plot(written, r).spec["vconcat"]
        api.export("w", "w.pickle", format="pywren")
        imported = api.import_results("w.pickle", "imported", phase="write", size="64KiB")
        assert (imported.path, imported.summary.bytes) == (Path("imported"), 131072)
        assert api.clean("w").complete
