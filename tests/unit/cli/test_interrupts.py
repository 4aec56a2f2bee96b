"""No interrupt is lost."""

import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from serverless_bench.cli.process import ENDING, interruptible
from tests.commands.processes import PATIENCE_S


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Restore Ctrl-C, which scripts ignore in the background, and SIGHUP, which nohup ignores."""
    before = {number: signal.getsignal(number) for number in ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Thing:
    pass


def during_the_repair(patch: pytest.MonkeyPatch) -> None:
    """Interrupt again before the thread that repeats the first is left alone."""
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        os.kill(os.getpid(), signal.SIGTERM)

    patch.setattr(threading.Thread, "start", interrupted)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_dropped_by_python_is_repeated(
    number: signal.Signals,
    again: bool,  # noqa: FBT001 - parametrized
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if again:
        during_the_repair(monkeypatch)
    before = sys.unraisablehook
    things = [Thing()]
    # Python ignores exceptions in this callback, as in those of the import system.
    watched = weakref.ref(things[0], lambda _: os.kill(os.getpid(), number))

    def command() -> None:
        things.clear()
        assert watched() is None
        threading.Event().wait(PATIENCE_S)

    with interruptible(), pytest.raises(KeyboardInterrupt):
        command()
    assert sys.unraisablehook is before


def test_anything_else_that_is_dropped_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[object] = []
    thing = Thing()
    watched = weakref.ref(thing, lambda _: 1 / 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda dropped: shown.append(dropped.exc_type))
        with interruptible():
            del thing
            assert watched() is None
    assert shown == [ZeroDivisionError]
    assert capsys.readouterr().err == ""


def test_a_second_interrupt_is_not_heard_while_the_first_is_handled() -> None:
    with interruptible() as interrupt:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        for number in ENDING:
            os.kill(os.getpid(), number)
        interrupt.forget()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGHUP)
        interrupt.forget()
        interrupt.ignore()
        os.kill(os.getpid(), signal.SIGTERM)


def test_signals_ignored_at_the_start_stay_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruptible():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
