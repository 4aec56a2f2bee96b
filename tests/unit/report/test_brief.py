"""The report that a run ends with fits a terminal of 80 columns and 24 lines."""

import os
import pty
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.metrics.summary import summarize
from serverless_bench.report import open_reporter
from serverless_bench.rundir.run import load_run
from tests.house.members import uses
from tests.tables import each_row

RECORDED: Final = Path(__file__).parents[2] / "recorded"
RUNS: Final = sorted(path.name for path in RECORDED.iterdir())
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(RECORDED)
    monkeypatch.delenv("NO_COLOR", raising=False)


def brief(name: str) -> str:
    """Return the report of a recorded run as a terminal gets it."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        open_reporter("text")(summarize(load_run(RECORDED / name)), terminal)
    text = b""
    # Linux fails so where the other end was closed.
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as screen:
        while data := screen.read(1 << 16):
            text += data
    return _STYLES.sub("", text.decode()).replace("\r\n", "\n")


@each_row("name", RUNS)
def test_a_brief_report_has_twelve_lines_of_eighty_columns(name: str) -> None:
    lines = brief(name).splitlines()
    assert len(lines) <= 12, lines
    assert [line for line in lines if len(line) > 80] == []


@each_row("name", RUNS)
def test_a_brief_report_answers_first_and_names_the_full_one(name: str) -> None:
    summary = summarize(load_run(RECORDED / name))
    text = brief(name)
    answer = " ".join(text.split(" bytes ")[0].split())
    assert f"{summary.ok} of {summary.requested} functions ok" in answer
    assert "throughput" in answer
    assert f"sbench report {name} --full" in text


def test_few_operations_have_a_maximum_and_many_a_percentile() -> None:
    assert re.search(r" put +6 ok, p50 [0-9.]+ ms, max ", brief("write"))
    assert re.search(r" get +101 ok, p50 [0-9.]+ ms, p99 ", brief("dropped"))


def test_operations_come_first_where_objects_are_small() -> None:
    assert re.search(r"throughput +411 op/s and 15.1 MB/s", brief("mixed"))
    assert re.search(r"throughput +378.5 MB/s and 60.2 op/s", brief("write"))


def test_many_problems_are_counted() -> None:
    assert "\n  11 problems, see --full: 3 x corrupt\n" in brief("failures")
    assert "\n  5 problems, see --full: 1 x throttled\n" in brief("made-troubled")


@uses("feature why")
def test_only_a_run_that_can_be_repeated_has_a_command_that_asks_why() -> None:
    assert "; sbench why mixed (1 min)" in brief("mixed")
    assert not [
        name for name in RUNS if name.startswith(("imported", "custom")) and "why" in brief(name)
    ]
