"""The display of a run: in a terminal, in a log, or none."""

import io
import os
import threading
from contextlib import suppress
from importlib import import_module

import pytest

from serverless_bench.driver.policy import Style, shown
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.live import progress
from serverless_bench.features.live.screen import view_lines
from serverless_bench.features.live.view import RunView
from serverless_bench.rundir.record import Outcome
from tests.commands.processes import PATIENCE_S
from tests.data.runs import job, lost, outcome


class Log(io.StringIO):
    """Standard error that signals each new line."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self.written = threading.Event()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        count = super().write(text)
        if "\n" in text:
            self.written.set()
        return count


def ignore(_: Outcome) -> None:
    """Ignore an outcome."""


@pytest.mark.parametrize("loaded", ["json", "ipykernel.kernelapp"])
@pytest.mark.parametrize("style", ["none", "bar"])
def test_without_a_reader_no_view_is_made(
    style: Style, loaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module(loaded)  # installed with notebook runners, but not a notebook itself
    monkeypatch.setattr("sys.stderr", Log())
    with shown(job(number=1), 1, RunProgress(), ignore, progress=style) as tell:
        assert tell is ignore


def test_a_log_has_a_line_when_a_run_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(progress, "_UNASKED_S", 0.001)
    with shown(job(number=3), 3, RunProgress(), ignore, progress=True):
        assert log.written.wait(PATIENCE_S)
    launch = "bottleneck: launch: 0 of 3 functions launched"
    assert log.getvalue().startswith(f"0 s: starting, 3 waiting, 0 done of 3; {launch}\n")


def test_a_short_run_leaves_a_log_alone_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: dict[Style, int] = {}
    for style in ("auto", "plain"):
        log = Log()
        monkeypatch.setattr("sys.stderr", log)
        with shown(job(number=1), 1, RunProgress(), ignore, progress=style):
            pass
        lines[style] = len(log.getvalue().splitlines())
    assert lines == {"auto": 0, "plain": 1}


def test_a_log_has_each_note_at_once_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, live = Log(), RunProgress(notes=["before"])
    monkeypatch.setattr("sys.stderr", log)
    with shown(job(number=1), 1, live, ignore, progress="auto"):
        live.note("the credentials were refused\x1b", act=True)
        assert log.getvalue() == "note: before\nnote: the credentials were refused\\x1b\n"
    assert live.unprinted() == []
    live.note("after")
    assert live.unprinted() == ["after"]


def test_a_terminal_shows_the_last_note_and_rings_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, live = Log(terminal=True), RunProgress()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setenv("TERM", "xterm")
    with shown(job(number=1), 1, live, ignore, progress="auto"):
        live.note("wait")
        assert "\a" not in log.getvalue()
        live.note("log in", act=True)
        live.note("log in once more", act=True)
    assert log.getvalue().count("\a") == 1
    assert live.unprinted() == ["wait", "log in", "log in once more"]
    text = str(view_lines(RunView(job(number=1), 1, live).look(), 80))
    assert text.splitlines()[-1].split(maxsplit=1) == ["note", "log in once more"]


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_is_a_log(term: str, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr("sys.stderr", Log(terminal=True))
    monkeypatch.setenv("TERM", term)
    assert progress._is_terminal() is drawn


def test_a_run_continues_without_a_reader_of_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with suppress(BrokenPipeError), os.fdopen(writing, "w") as closed:
        monkeypatch.setattr("sys.stderr", closed)
        with shown(job(number=1), 1, RunProgress(), ignore, progress="plain") as tell:
            tell(outcome(lost(0)))
        monkeypatch.undo()
