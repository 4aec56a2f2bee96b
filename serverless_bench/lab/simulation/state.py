"""Where every function, group and request of a simulation stands, as arrays.

A *group* is one thread of one function, which makes one operation after the other; its *lanes*
are the requests that it may have in flight at once. Instants are seconds since the run began,
and each lane has its own: within a step they move on independently.
"""

from dataclasses import dataclass, field

import numpy as np

from serverless_bench.lab.simulation.demand import Demand
from serverless_bench.lab.simulation.launch import SimulatedLauncher
from serverless_bench.rundir.tables import Floats, Ints, Mask

BODY, CREATE, COMPLETE = range(3)
"""What a group is doing: moving bytes, or opening or closing an upload in parts."""


@dataclass(slots=True, eq=False)
class Lanes:
    """One request in flight each; shape ``(functions * threads * lanes,)``."""

    now_s: Floats
    """How far it has come; infinite if it has nothing to do."""
    moving: Mask
    """Whether its request was admitted and bytes flow."""
    part: Ints
    """Which part of its operation, from 0."""
    left: Floats
    """Bytes of the request that have not moved."""
    size: Floats
    post_s: Floats
    """How long the acknowledgement takes, once they have."""
    began_s: Floats
    answered_s: Floats
    wait_s: Floats
    """Before this attempt."""
    number: Ints
    """Attempts of this request that failed."""
    until_s: Floats
    """Until when it is tried again; infinite as long as nothing was refused."""
    piece_s: Floats
    """Where the stretch of its curve began that is not noted yet."""
    piece: Floats
    """Bytes of that stretch."""

    @classmethod
    def of(cls, count: int) -> "Lanes":
        """Return lanes with nothing to do."""
        zeros = [np.zeros(count) for _ in range(8)]
        return cls(
            now_s=np.full(count, np.inf),
            moving=np.zeros(count, dtype=np.bool_),
            part=np.zeros(count, dtype=np.int64),
            left=zeros[0],
            size=zeros[1],
            post_s=zeros[2],
            began_s=zeros[3],
            answered_s=zeros[4],
            wait_s=zeros[5],
            number=np.zeros(count, dtype=np.int64),
            until_s=np.full(count, np.inf),
            piece_s=zeros[6],
            piece=zeros[7],
        )


@dataclass(slots=True, eq=False)
class Groups:
    """Threads of functions; shape ``(functions * threads,)``."""

    operation: Ints
    """The one that it is at, or one past its last."""
    doing: Ints
    pending: Ints
    """Lanes that are still busy with it."""
    end_s: Floats
    """The latest that its lanes have come to."""
    failed: Mask
    """Whether a request of the operation was given up."""


@dataclass(slots=True, eq=False)
class Done:
    """What became of operations; shape ``(operations,)``, NaN if they were not begun."""

    start_s: Floats
    end_s: Floats
    failed: Mask


@dataclass(slots=True, eq=False)
class Log:
    """Rows that grow a chunk of columns at a time."""

    columns: int
    _chunks: list[tuple[Floats, ...]] = field(default_factory=list)

    def add(self, *columns: Floats | Ints) -> None:
        """Append rows; all columns are of one length."""
        if len(columns[0]):
            self._chunks.append(tuple(np.asarray(column, dtype=np.float64) for column in columns))

    def table(self) -> list[Floats]:
        """Return the columns; the chunks are gone."""
        found = [
            np.concatenate([chunk[number] for chunk in self._chunks] or [np.zeros(0)])
            for number in range(self.columns)
        ]
        self._chunks = []
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationState:
    """What happened; instants are seconds since the run began."""

    launcher: SimulatedLauncher
    done: Done
    end_s: Floats
    """Of each function."""
    stopped: Mask
    """Which functions came to their deadline before their last operation."""
    attempts: list[Floats]
    """Columns: lane, operation, what its group is doing, part, number, start, end, wait, answered,
    bytes, whether it was refused."""
    pieces: list[Floats]
    """Columns: lane, operation, start, end, bytes."""


def groups_of(demand: Demand) -> Groups:
    """Return groups that have not begun."""
    count = demand.functions * demand.threads
    return Groups(
        operation=demand.first[:-1].copy(),
        doing=np.full(count, BODY),
        pending=np.zeros(count, dtype=np.int64),
        end_s=np.zeros(count),
        failed=np.zeros(count, dtype=np.bool_),
    )
