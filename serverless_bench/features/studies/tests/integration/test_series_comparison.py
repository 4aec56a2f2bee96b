"""Sweeps are compared combination by combination, as one family of tests."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.features.compare.tests.integration.test_compare import make_run
from serverless_bench.features.studies.loading import parse
from serverless_bench.features.studies.observations import run_path
from serverless_bench.features.studies.plan import Plan, save_plan
from tests.commands.command import Call, Sbench
from tests.data.runs import job
from tests.house.members import uses

STUDY = """
title = "Writes by number of functions"
question = "Which throughput has each?"
null_hypothesis = "All are alike."
design = "full"
[seed]
source = "none"
date = "-"
[small]
repeats = 1
min_bytes = 1
[paper]
min_bytes = 1
[[axes]]
name = "size"
values = {sizes}
[[metrics]]
name = "ops_per_s"
of = "ops_per_s"
"""
SPREAD = (1.0, 1.01, 1.02, 1.03, 1.04, 1.05)
SIZES = ("1KiB", "2KiB", "3KiB")


def make_series(
    root: Path,
    factor: Callable[[str], float],
    *,
    sizes: tuple[str, ...] = SIZES,
    rounds: int = 6,
    first_ns: int = 0,
) -> Path:
    """Save a series in whose runs each function needs a second, times a factor by size."""
    study = parse(STUDY.format(sizes=json.dumps(sizes)), root.name)
    plan = Plan(study=study, scale="small", repeats=rounds)
    save_plan(plan, root)
    for number, cell in enumerate(plan.cells()):
        size = str(cell.at["size"])
        of = replace(job(number=1), size=1024 * int(size[0]))
        for at in range(rounds):
            made_ns = first_ns + 100 * at + 2 * number
            path = run_path(root, cell, at + 1)
            make_run(path, factor(size) * SPREAD[at % 6], of, created_ns=made_ns)
    return root


def test_each_cell_has_a_verdict_and_so_have_all_together(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "runs/a", lambda _: 1.0)
    make_series(tmp_path / "runs/b", {"1KiB": 1.0, "2KiB": 0.5, "3KiB": 2.0}.__getitem__)
    series = ("compare", "a", "b", "--run-dir", "runs")
    code, out, err = call(*series)
    assert (code, err) == (9, "")
    rows = [line.split() for line in out.splitlines() if line.startswith(("size=", "all,"))]
    assert [(row[0], row[-1]) for row in rows] == [
        ("size=1KiB", "same"),
        ("size=2KiB", "faster"),
        ("size=3KiB", "slower"),
        ("all,", "same"),
    ]
    assert "6 + 6" in out
    assert "one side ended before the other started" not in out
    document = json.loads(call(*series, "--format", "json")[1])
    assert [cell["ratio"] for cell in document["cells"]] == pytest.approx([1, 2, 0.5, 1])
    assert document["cells"][1]["verdict"] == "faster"
    assert [len(values) for values in document["cells"][-1]["values"]] == [6, 6]
    assert document["left_out"] == []
    markdown = call(*series, "--format", "markdown")[1]
    assert markdown.count("\n| size=") == 3
    page = call(*series, "--format", "html")[1]
    assert "1 faster, 1 slower, 2 same" in page


def test_several_sweeps_are_compared_with_the_first(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "a", lambda _: 1.0)
    for name in "bc":
        make_series(tmp_path / name, lambda _: 1.0, first_ns=1)
    document = json.loads(call("compare", "a", "b", "c", "--format", "json")[1])
    assert [cell["other"] for cell in document["cells"]] == ["B", "C"] * 4


def test_cells_that_cannot_be_compared_are_named(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "a", lambda _: 1.0)
    b = make_series(tmp_path / "b", lambda _: 1.0, sizes=("2KiB", "3KiB"), rounds=5, first_ns=10**6)
    for path in b.glob("cells/*3KiB/*"):
        shutil.rmtree(path)
    code, out, err = call("compare", "a", "b")
    assert (code, err) == (10, "")
    assert "size=1KiB: not in B\n" in out
    assert "size=3KiB: no run of B counts\n" in out
    assert "not enough runs: a verdict needs 6 rounds of each" in out
    assert "one side ended before the other started" in out
    # With one cell, all together would be the same again.
    assert "geometric mean" not in out


def test_series_without_a_common_cell_are_refused(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "a", lambda _: 1.0, sizes=("1KiB",))
    make_series(tmp_path / "b", lambda _: 1.0, sizes=("2KiB",))
    code, out, err = call("compare", "a", "b")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "sbench: no cell can be compared",
        "hint: size=1KiB: not in B; size=2KiB: not in A",
    ]
    sizes = tuple(f"{number}MiB" for number in range(1, 7))
    make_series(tmp_path / "c", lambda _: 1.0, sizes=sizes)
    code, _, err = call("compare", "a", "c")
    assert (code, err.splitlines()[1].rpartition("; ")[2]) == (2, "and 3 more")
    code, _, err = call("compare", "a", "b", "--metric", "nosuch")
    assert (code, err.splitlines()[0]) == (2, "sbench: 'nosuch' is not a metric")
    make_run(tmp_path / "run", 1.0)
    code, _, err = call("compare", "a", "run")
    assert (code, "run is not the directory of a study" in err) == (8, True)


@uses("feature sweep")
def test_sweeps_that_ran_are_compared(sbench: Sbench) -> None:
    for name in ("first", "second"):
        flags = ("write", "--size", "4KiB", "--in-flight", "1,2", "--budget", "12s")
        assert sbench("sweep", *flags, "--name", name).code == 0
    done = sbench("compare", "first", "second", "--metric", "put.p50", "--format", "json")
    assert done.code in {0, 9, 10}, done.err
    document = json.loads(done.out)
    assert [cell["cell"] for cell in document["cells"]] == [
        "job=write size=4KiB in_flight=1",
        "job=write size=4KiB in_flight=2",
        "all, geometric mean",
    ]
    assert all(map(all, (cell["values"] for cell in document["cells"])))
    wrong = sbench("compare", "first", "second", "--metric", "get.p50")
    assert (wrong.code, "no cell can be compared" in wrong.err) == (2, True)
