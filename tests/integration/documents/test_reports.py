"""``docs/reports.txt`` is what a terminal of 80 columns and 24 lines shows of recorded runs."""

import os
import pty
import re
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands.command import COMMAND
from tests.documents.quoted import ROOT
from tests.house.members import EVERY_WORKLOAD, uses

RECORDED = ROOT / "tests" / "recorded"
PAGE = ROOT / "docs" / "reports.txt"
RUNS = ("write", "read", "mixed", "conditional", "custom", "lambda")
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def shown(*arguments: str | Path) -> str:
    """Return what a command shows on a terminal, without colours."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=theirs, env=environment, cwd=RECORDED
    ) as process:
        os.close(theirs)
        data = b""
        # Linux fails so when the other end was closed.
        with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as screen:
            while more := screen.read(1 << 16):
                data += more
    assert process.returncode in {0, 6}
    return STYLES.sub("", data.decode()).replace("\r\n", "\n")


@uses(*EVERY_WORKLOAD)
def test_the_page_has_the_reports_of_six_kinds_of_runs(request: pytest.FixtureRequest) -> None:
    reports = {run: shown("report", run) for run in RUNS}
    for report in reports.values():
        lines = report.splitlines()
        assert len(lines) <= 12
        assert max(map(len, lines)) <= 80
    text = "\n".join(f"$ sbench report {run}\n{report}" for run, report in reports.items())
    if request.config.getoption("update_golden"):
        PAGE.write_text(text)
    assert text == PAGE.read_text(), "make golden"
