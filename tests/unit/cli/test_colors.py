"""Colours are for terminals, and NO_COLOR and TERM=dumb turn them off to the last byte."""

import re
from pathlib import Path

import pytest

from tests.commands.terminal import on_a_terminal
from tests.data import runs
from tests.tables import each_row

STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Select Graphic Rendition (ECMA-48, section 8.3.117)."""
COMMANDS = [("ls",), ("report",), ("report", "--full"), ("check",), ("plan",), ("report", "none")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("colors")
    outcomes = [runs.outcome(runs.record(0, [runs.operation()])), runs.outcome(runs.lost(1))]
    runs.saved(root / "sbench-runs" / "one", outcomes, of=runs.job(number=2))
    return root


@each_row("words", COMMANDS, ids=" ".join)
@each_row("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_color_is_no_byte_of_color(
    words: tuple[str, ...], environment: dict[str, str], directory: Path
) -> None:
    _, text = on_a_terminal(directory, *words, environment=environment)
    assert len(text.splitlines()) > 1
    assert "\x1b" not in text


def test_a_terminal_has_colors(directory: Path) -> None:
    _, text = on_a_terminal(directory, "report", "--full")
    assert STYLE.search(text)
    # A list has no styles, not even the code that ends a style.
    assert not STYLE.search(on_a_terminal(directory, "ls")[1])
