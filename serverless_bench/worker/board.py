"""The board: memory that functions on a machine share with their driver.

Through it the driver tells the functions to stop. A feature may add counters, through which they
inform the driver: a slot for each worker process.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from mmap import mmap
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from serverless_bench.base.errors import StopRequested
from serverless_bench.base.plugins import Registry
from serverless_bench.job.operations import OperationKind
from serverless_bench.worker.meter import unseen

if TYPE_CHECKING:
    from serverless_bench.worker.cpu_time import LockProbe
    from serverless_bench.worker.operation import MeasuredOperation

WARM_UP: Final = "warmup"
"""Kind used for operations that reports leave out: preparations and warm-ups."""
KINDS: Final = (*map(str, OperationKind), WARM_UP)
DURATION_OVER, RUN_OVER, ABORT = 1, 2, 3
"""How functions stop; see ``Board.stop``."""
ABORT_S: Final = 2.0
"""Time from ``RUN_OVER`` to ``ABORT``, in which running operations may end by themselves."""
HEADER_WORDS: Final = 8
"""Words before the first slot: the driver writes them, so they have a separate cache line."""
WORD_BYTES: Final = 8
_STOP: Final = 0
"""Word of the header that tells functions to stop."""


class Totals(Protocol):
    """Sum of the counters of a board."""

    @property
    def bytes(self) -> Mapping[str, int]:
        """Bytes transferred in bodies, by kind of operation; includes failed attempts."""

    @property
    def operations(self) -> Mapping[str, int]:
        """Finished operations, by kind."""

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed attempts, by class."""

    @property
    def moved(self) -> int:
        """Bytes of all kinds."""

    @property
    def measured(self) -> int:
        """Finished operations, without preparations and warm-ups."""

    def since(self, before: Any, /) -> Self:
        """Return the increase since ``before``."""

    def __add__(self, other: Self, /) -> Self: ...


class Board:
    """Memory that functions and their driver share, without counters.

    Parameters
    ----------
    memory
        ``size_of`` the slots in bytes, initially zero: a mapped file if functions are separate
        processes.
    """

    slot_words: ClassVar[int] = 0
    """Words for each worker process."""

    def __init__(self, memory: bytearray | mmap) -> None:
        self._words = memoryview(memory).cast("B").cast("Q")

    @classmethod
    def here(cls) -> Self:
        """Return a board with one slot, for functions in this process."""
        return cls(bytearray(cls.size_of(1)))

    @classmethod
    def size_of(cls, slots: int) -> int:
        """Return the size of a board in bytes."""
        return (HEADER_WORDS + slots * cls.slot_words) * WORD_BYTES

    def stop(self, level: int = DURATION_OVER) -> None:
        """Make functions stop.

        Parameters
        ----------
        level
            ``DURATION_OVER``: functions with a duration, after their current operation.
            ``RUN_OVER``: all functions, likewise. ``ABORT``: all functions, in the middle of an
            operation, as at their deadline.
        """
        self._words[_STOP] = max(level, self._words[_STOP])

    @property
    def level(self) -> int:
        """How functions have to stop, as in ``stop``; 0 if they continue."""
        return self._words[_STOP]

    def writer(self, slot: int = 0) -> "BoardSlot":
        """Return a worker's slot; call it in the process that runs the functions."""
        del slot
        return BoardSlot(self)

    def totals(self) -> Totals | None:
        """Return the sum over all slots; None without counters."""
        return None


class BoardSlot:
    """A worker's end of a board.

    Parameters
    ----------
    board
        None for functions that share no memory with their driver.
    """

    due_ns = sys.maxsize
    """An operation that finishes at this instant or later calls ``count``."""
    probe: "LockProbe | None" = None
    """Samples the interpreter lock; None while no probe runs."""

    def __init__(self, board: Board | None = None) -> None:
        self._board = board
        self.on_moved: Mapping[str, Callable[[int, int], None]] = dict.fromkeys(
            KINDS, unseen if board is None else lambda _, took_ns: self.heed(took_ns)
        )
        """Callbacks by kind of operation: each takes the bytes and time of a running attempt, and
        raises ``StopRequested`` if that has to end."""

    def heed(self, took_ns: int) -> None:
        """Raise ``StopRequested`` if an attempt that took so long until now has to end."""
        # Between two attempts no time is reported.
        if self.level >= (ABORT if took_ns else RUN_OVER):
            raise StopRequested("the run was stopped")

    @property
    def level(self) -> int:
        """How functions have to stop, as in ``Board.stop``."""
        return 0 if self._board is None else self._board.level

    def follow(self, measured: "Sequence[MeasuredOperation]") -> None:
        """Count operations appended from now on to ``measured``, instead of the previous list."""

    def count(self, now_ns: int) -> None:
        """Count the operations that finished before ``now_ns``, an instant since the epoch."""


BOARDS: Final = Registry[type[Board]]("boards", {})
"""Boards with counters."""


def board_type() -> type[Board]:
    """Return the class of the boards of a run: with counters, if there is a feature for that."""
    return next(map(BOARDS.load, BOARDS), Board)
