"""Studies with checks of published rows, each in the smallest form that shows its result."""

import json
from typing import Any

import pytest

from serverless_bench.features.studies.loading import load_study
from tests.commands.command import Sbench

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/studies", "serverless_bench/features/loopback"
)

SHORT = ("--run-duration", "0.3")


def cells_of(sbench: Sbench, name: str, *flags: str) -> dict[str, dict[str, Any]]:
    """Run a part of a study once; return its results, by the names or values of cells."""
    done = sbench("study", "run", name, *flags, "--repeats", "1", "--format", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["complete"]
    assert [check["kind"] for check in report["checks"]]
    found = {}
    for cell in report["cells"]:
        label = cell["name"] or " ".join(map(str, cell["at"].values()))
        found[label] = {
            metric: entry["measured"] and entry["measured"]["at"]
            for metric, entry in cell["metrics"].items()
        }
    return found


def test_failed_ranges_are_counted_separately(sbench: Sbench) -> None:
    """Every fifth answer is cut off: attempts are repeated, and only complete ranges count."""
    one = ("--only", "client=wire", "--only", "size=16KiB")
    found = cells_of(sbench, "python-range-readers", *SHORT, *one)
    whole, cut = found["wire, whole"], found["wire, a fifth cut off"]
    assert whole["failed"] == 0
    assert whole["requests_per_s"] == pytest.approx(whole["ranges_per_s"])
    assert cut["failed"] > 0
    arrived = cut["requests_per_s"] * (1 - cut["failed"] / 100)
    assert cut["ranges_per_s"] == pytest.approx(arrived)


def test_reads_and_writes_of_a_mix_have_rows_of_their_own(sbench: Sbench) -> None:
    short = ("--only", "store=Tigris", "--run-duration", "0.5")
    found = cells_of(sbench, "small-objects-stores", *short)
    assert found["Tigris load"]["reads_per_s"] is None
    mix = found["Tigris mix"]
    assert mix["reads_per_s"] > mix["writes_per_s"] > 0
    assert mix["read_floor"] <= mix["read_p50"] <= mix["read_p90"] <= mix["read_p95"]


@pytest.mark.parametrize(
    ("name", "flags", "cells"),
    [
        (
            "concurrency-knee",
            (*SHORT, "--only", "concurrency=16,32", "--set", "serve.latency=fixed:20ms"),
            2,
        ),
        ("model-streamer-concurrency", ("--only", "connections=16,64", "--set", "size=8MiB"), 2),
        (
            "sebs-flow-parallel-download",
            ("--only", "platform=Azure 2024", "--only", "size=8MiB"),
            1,
        ),
    ],
)
def test_a_small_form(sbench: Sbench, name: str, flags: tuple[str, ...], cells: int) -> None:
    found = cells_of(sbench, name, *flags)
    assert len(found) == cells
    columns = {metric.name for metric in load_study(name).metrics}
    for measured in found.values():
        assert set(measured) == columns
        assert all(measured.values())
