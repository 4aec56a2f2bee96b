"""State of all functions, groups and requests of a simulation, as arrays.

A *group* is one thread of one function, which runs its operations in sequence; its *lanes* are
the requests that it may have in flight at once. Instants are seconds since the start of the run,
and each lane has a separate clock: within a step, lanes advance independently.
"""

from dataclasses import dataclass, field

import numpy as np

from serverless_bench.features.cost.limits import FunctionLauncher
from serverless_bench.features.simulation.demand import Demand
from serverless_bench.rundir.tables import Floats, Ints, Mask

BODY, CREATE, COMPLETE = range(3)
"""Activities of a group: transferring bytes, or opening or completing a multipart upload."""


@dataclass(slots=True, eq=False)
class Lanes:
    """Lanes, each for a request in flight; shape ``(functions * threads * lanes,)``."""

    now_s: Floats
    """Present instant of the lane; infinite if it is idle."""
    moving: Mask
    """Whether the request was admitted and bytes flow."""
    part: Ints
    """Index of the part in the operation, from 0."""
    left: Floats
    """Bytes of the request that remain to be transferred."""
    size: Floats
    post_s: Floats
    """Time of the acknowledgement after the last byte."""
    began_s: Floats
    answered_s: Floats
    wait_s: Floats
    """Wait before this attempt."""
    number: Ints
    """Failed attempts of this request."""
    until_s: Floats
    """Deadline for retries; infinite unless an attempt was rejected."""
    piece_s: Floats
    """Start of the piece of the curve that has not been recorded yet."""
    piece: Floats
    """Bytes of that piece."""

    @classmethod
    def idle(cls, count: int) -> "Lanes":
        """Return idle lanes."""
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
    """Index of the current operation, or one past the last of the group."""
    doing: Ints
    pending: Ints
    """Lanes that are still busy with the operation."""
    end_s: Floats
    """Latest end of the group's lanes."""
    failed: Mask
    """Whether a request of the operation was given up."""


@dataclass(slots=True, eq=False)
class Done:
    """Outcomes of operations; shape ``(operations,)``, NaN for operations that were not started."""

    start_s: Floats
    end_s: Floats
    failed: Mask


@dataclass(slots=True, eq=False)
class Log:
    """Rows that grow by a chunk of columns at a time."""

    columns: int
    _chunks: list[tuple[Floats, ...]] = field(default_factory=list)

    def add(self, *columns: Floats | Ints) -> None:
        """Append rows; all columns have the same length."""
        if len(columns[0]):
            self._chunks.append(tuple(np.asarray(column, dtype=np.float64) for column in columns))

    def table(self) -> list[Floats]:
        """Return the columns, and discard the chunks."""
        columns = [
            np.concatenate([chunk[number] for chunk in self._chunks] or [np.zeros(0)])
            for number in range(self.columns)
        ]
        self._chunks = []
        return columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationState:
    """Outcome of a simulation; instants are seconds since the start of the run."""

    launcher: FunctionLauncher
    done: Done
    end_s: Floats
    """End of each function."""
    stopped: Mask
    """Mask of functions that reached the deadline before the last operation."""
    attempts: list[Floats]
    """Columns: lane, operation, activity of its group, part, number, start, end, wait, answered,
    bytes,
    whether it was rejected.
    """
    pieces: list[Floats]
    """Columns: lane, operation, start, end, bytes."""


def groups_of(demand: Demand) -> Groups:
    """Return groups that have not started."""
    count = demand.functions * demand.threads
    return Groups(
        operation=demand.first[:-1].copy(),
        doing=np.full(count, BODY),
        pending=np.zeros(count, dtype=np.int64),
        end_s=np.zeros(count),
        failed=np.zeros(count, dtype=np.bool_),
    )
