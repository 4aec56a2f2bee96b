"""The functions' side of the stop object: a thread that looks for it while a function runs.

The driver writes the object before the first launch, so that a function needs only permission to
read claims, and writes it again to stop the functions. ``features.remote.stop`` is that side.
"""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Timer
from typing import Any, Final

from serverless_bench.base.clock import repeated, wall_ns
from serverless_bench.base.errors import AccessDenied, OperationError
from serverless_bench.base.units import KIB
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.worker.board import ABORT, ABORT_S, RUN_OVER, Board, BoardSlot
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import ObjectIO

STOP: Final = "claims/stop"
"""Key of the stop object, without the run's prefix; functions may read what is below ``claims/``.

It has the run id, the last ``launch`` that has to stop, the ``level`` of ``Board.stop``, the
interval of the looks, ``look_s``, and the time of writing.
"""
PROGRESS_FOLDER: Final = "claims/progress/"
PROGRESS: Final = "progress_s"
"""Option of an invocation: the interval of its progress objects in seconds."""
LOOK: Final = "look_s"
"""Option of an invocation: the interval of its looks in seconds. Without it, there are none."""
MOST_BYTES: Final = 4 * KIB
_ANSWER_S: Final = 5.0
"""Time limit of a look: the next one may succeed."""
_JITTER: Final = 0.1
"""Share by which intervals differ, so that a thousand functions do not look at the same instant."""


def progress_name(index: int, launch: int) -> str:
    """Return the key of a progress object, without the run's prefix."""
    return f"{PROGRESS_FOLDER}{index:08}/{launch}"


def read_stop(store: ObjectIO, *, timeout_s: float = _ANSWER_S) -> dict[str, Any]:
    """Return the stop object of a run; empty if it is not valid.

    Raises
    ------
    OperationError
        If it does not exist, or cannot be read in time.
    """
    try:
        data = json.loads(store.get(STOP, most=MOST_BYTES, timeout_s=timeout_s))
    except (RecursionError, TooLong, ValueError):
        return {}
    is_valid = isinstance(data, dict) and all(type(data.get(n)) is int for n in ("launch", "level"))
    return data if is_valid else {}


@contextmanager
def looking(store: ObjectIO, invocation: InvocationSpec) -> Iterator[BoardSlot]:
    """Yield the slot through which an invocation is stopped, and look for the stop meanwhile.

    The first look is made before the block.

    Parameters
    ----------
    store
        Objects below the control prefix of the run.
    invocation
        The invocation; its options have the interval.
    """
    look_s = invocation.options.get(LOOK)
    if not isinstance(look_s, int | float) or look_s <= 0:
        yield BoardSlot()
        return
    progress_s = invocation.options.get(PROGRESS)
    shows = isinstance(progress_s, int | float) and progress_s > 0
    board = _counting_board() if shows else Board.here()
    looks, slot = _Looks(store, invocation.launch, board), board.writer()
    looks.look()
    with ExitStack() as stack:
        if shows:
            stack.enter_context(_showing(store, invocation, slot, board))
        every_s = look_s * random.uniform(1 - _JITTER, 1)
        stack.enter_context(repeated(looks.look, every_s, name="looks for a stop"))
        yield slot


def _counting_board() -> Board:
    """Return a board with counters; its code is loaded only in functions that show progress."""
    from serverless_bench.features.live.board import OwnBoard

    return OwnBoard.here()


@contextmanager
def _showing(
    store: ObjectIO, invocation: InvocationSpec, slot: BoardSlot, board: Board
) -> Iterator[None]:
    """Write the counters of a function into the progress object, while the block runs."""
    name, shown = progress_name(invocation.index, invocation.launch), Event()
    begin_ns = wall_ns()

    def show(*, ended: bool = False) -> None:
        shown.set()
        slot.count(at_ns := wall_ns())
        # The run id comes first, because `sbench clean` reads only the beginning.
        content = {
            "run_id": invocation.run_id,
            "begin_ns": begin_ns,
            "at_ns": at_ns,
            "ended": ended,
            "counters": {n: v for n, v in enumerate(getattr(board.totals(), "words", ())) if v},
        }
        # The next one may succeed, and nothing depends on it.
        with suppress(OperationError):
            store.put(name, json.dumps(content).encode(), timeout_s=_ANSWER_S)

    with repeated(show, invocation.options[PROGRESS], name="progress objects"):
        yield
    # Nobody has looked for the object of a function that was shorter than an interval.
    if shown.is_set():
        show(ended=True)


class _Looks:
    def __init__(self, store: ObjectIO, launch: int, board: Board) -> None:
        self._store = store
        self._launch = launch
        self._board = board
        self._denied = False

    def look(self) -> None:
        """Look for the stop, unless a look was denied."""
        if self._denied:
            return
        try:
            found = read_stop(self._store)
        except AccessDenied:
            self._denied = True
        except OperationError:
            # The next look may succeed. Without the object nobody has stopped the run.
            pass
        else:
            if found and found["launch"] >= self._launch:
                self._stop(found["level"])

    def _stop(self, level: int) -> None:
        """Stop like a driver that shares memory: running operations may end by themselves."""
        if level == ABORT > self._board.level:
            self._board.stop(RUN_OVER)
            timer = Timer(ABORT_S, self._board.stop, (ABORT,))
            timer.daemon = True
            timer.start()
        else:
            self._board.stop(level)
