"""The store of a cell behaves as its study says, at both scales, and its chart says so."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.studies.observations import observe, operation_rates
from serverless_bench.features.studies.plan import load_plan
from serverless_bench.features.studies.plot import picture
from serverless_bench.features.studies.report import Report, make_report
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Sbench
from tests.data.pictures import panels, rows, title_of
from tests.house.drawn import problems
from tests.house.members import uses
from tests.stores.servers import DIRECT, Server, loopback

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/studies", "serverless_bench/features/loopback"
)

ONCE = ("--repeats", "1", "--name", "e", "--format", "json")


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Server]:
    """A user's own store with answers 10 ms late."""
    with loopback("--latency", "fixed:10ms", log=tmp_path / "serve.log") as server:
        yield server


def requests(server: Server) -> Counter[str]:
    with DIRECT.open(f"{server.endpoint_url}/-/statistics") as answer:
        return Counter(json.load(answer)["requests"])


def runs(sbench: Sbench) -> list[Run]:
    cells = sbench.directory / "sbench-runs" / "e" / "cells"
    return [load_run(path.parent) for path in sorted(cells.glob("*/*/run.json"))]


def report_of(root: Path) -> Report:
    plan = load_plan(root)
    return make_report(plan, observe(root, plan.cells(), repeats=plan.repeats, min_bytes=1))


@uses("workload read")
def test_the_baseline_of_a_pre_stat_sends_a_head_for_each_get(sbench: Sbench, late: Server) -> None:
    """The published program's older version requested the size before each read."""
    sent: dict[str, Counter[str]] = {}
    p50_ms: dict[str, float] = {}
    for stat in ("off", "on", "control"):
        before = requests(late)
        short = ("--only", "size=1MiB", "--set", "size=4KiB", "--set", "read_times=5")
        where = ("--endpoint-url", late.endpoint_url, "--bucket", "b", "--keep")
        only = ("--only", f"stat={stat}", *short, *where, "--repeats", "1", "--format", "json")
        done = sbench("study", "run", "sai3-prestat", *only)
        assert done.code == 0, done.err
        (cell,) = (cell for cell in done.json["cells"] if cell["at"]["stat"] == stat)
        p50_ms[stat] = cell["metrics"]["p50_ms"]["measured"]["at"]
        sent[stat] = requests(late) - before
    assert sent["off"]["head"] == sent["off"]["get"] > 0
    # Once for each of 16 objects, instead of once for each of its 5 reads.
    assert sent["on"]["head"] * 5 == sent["on"]["get"] == sent["off"]["get"]
    assert sent["control"]["head"] == 0
    # Both answers are 10 ms late.
    assert p50_ms["off"] > 19


TINY_CELLS = {
    "s3-client-threads": ("--only", "threads=8", "--set", "objects=16", "--set", "client=wire"),
    "s3-client-threads-by-size": (
        *("--only", "threads=8", "--only", "size=64KiB", "--set", "objects=16"),
        *("--set", "client=wire"),
    ),
    "s3-client-processes": (
        *("--only", "client=minio", "--only", "processes=1", "--set", "total_objects=16"),
    ),
    "s3-client-libraries": (
        *("--only", "client=wire", "--only", "processes=1", "--only", "signing=library"),
        *("--set", "total_objects=16"),
    ),
    "zarr-writers-append": (
        *("--only", "library=tensorstore", "--only", "target=s3", "--set", "objects=2"),
        *("--set", "shape=[8,8,8]", "--set", "chunks=[8,8,8]"),
    ),
    "zarr-writers-write": (
        *("--only", "library=tensorstore", "--only", "target=s3", "--only", "multiplier=1"),
        *("--set", "shape=[8,8,8]", "--set", "chunks=[8,8,8]"),
    ),
}


@uses("workload array")
@pytest.mark.parametrize("name", sorted(TINY_CELLS))
def test_clients_and_writers_have_a_store_that_keeps_nothing_at_the_scale_of_the_paper(
    sbench: Sbench, name: str
) -> None:
    done = sbench("study", "run", name, "--scale", "paper", *TINY_CELLS[name], *ONCE, "--keep")
    assert done.code == 0, done.err
    for run in runs(sbench):
        # The embedded store has a name.
        assert (run.job.target.store, run.job.target.bucket) == (None, "any")
    assert not done.json["shaped_store"]
    assert done.json["cells"][0]["bottlenecks"]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_a_store_of_the_user_replaces_the_loopback_store(
    sbench: Sbench, late: Server, scale: str
) -> None:
    where = ("--endpoint-url", late.endpoint_url, "--bucket", "b", "--scale", scale)
    cells = TINY_CELLS["s3-client-threads"]
    done = sbench("study", "run", "s3-client-threads", *cells, *where, *ONCE)
    assert done.code == 0, done.err
    (run,) = runs(sbench)
    assert run.job.target.endpoint_url == late.endpoint_url
    sent = requests(late)
    # Objects that it may keep are deleted.
    assert sent["put"] >= 16
    assert sent["delete"] > 0


@uses("workload array")
def test_appends_are_drawn_by_their_number_and_by_bytes(sbench: Sbench) -> None:
    tiny = ("--set", "objects=3", "--set", "shape=[8,8,8]", "--set", "chunks=[8,8,8]")
    only = ("--only", "library=tensorstore")
    done = sbench("study", "run", "zarr-writers-append", *only, *tiny, *ONCE, "--output", "p.png")
    assert done.code == 0, done.err
    assert (sbench.directory / "p.png").stat().st_size > 5000
    spec = picture(report_of(sbench.directory / "sbench-runs" / "e")).spec
    assert problems(spec) == []
    drawn = list(panels(spec))
    titles = [panel["title"]["text"] for panel in drawn]
    assert titles == ["By number of the write", "By bytes written (GB)"]
    by_number, by_bytes = drawn
    measured = {run.path.parent.name: operation_rates(run) / 1e9 for run in runs(sbench)}
    assert len(measured) == 2
    for panel, across in ((by_number, [1, 2, 3]), (by_bytes, [512e-9, 1024e-9, 1536e-9])):
        lines = {row["series"]: list[dict[str, float]]() for row in rows(panel)}
        for row in rows(panel):
            lines[row["series"]].append(row)
        heights = sorted([row["value"] for row in line] for line in lines.values())
        np.testing.assert_allclose(heights, sorted(map(list, measured.values())), rtol=1e-5)
        for line in lines.values():
            np.testing.assert_allclose([row["x"] for row in line], across)


@uses("workload read")
def test_functions_are_drawn_as_in_the_article(sbench: Sbench) -> None:
    tiny = ("--set", "objects=1", "--set", "size=4KiB", "--set", "number=2")
    done = sbench("study", "run", "pywren-2016", *tiny, *ONCE, "--output", "p.png")
    assert done.code == 0, done.err
    drawn = picture(report_of(sbench.directory / "sbench-runs" / "e"))
    assert problems(drawn.spec) == []
    titles = [title_of(panel).partition(", ")[0] for panel in panels(drawn.spec)]
    assert titles == [
        f"{workload}: {name}"
        for workload in ("write", "read")
        for name in ("functions over time", "throughput", "rate per function")
    ]
