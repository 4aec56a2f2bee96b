"""Tables of a run as pandas frames."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from serverless_bench.base.plugins import extra
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Table

if TYPE_CHECKING:
    import pandas as pd

_DURATIONS: Final = frozenset(
    {
        "barrier_wait_ns",
        "import_ns",
        "interpreter_ns",
        "payload_ns",
        "run_wait_ns",
        "step_ns",
        "wait_ns",
    }
)


class Frames(Struct, frozen=True, kw_only=True):
    """A run as tidy pandas frames.

    The column ``function`` of the other frames refers to the index of ``functions``. Times are
    UTC timestamps in columns without the suffix ``_ns``, all other values keep their units,
    and absent values are missing (``NaT``, ``NA``).
    """

    functions: "pd.DataFrame"
    """One row per planned invocation, and one per additional line about it."""
    operations: "pd.DataFrame"
    """One row per operation."""
    attempts: "pd.DataFrame"
    """One row per HTTP attempt."""
    progress: "pd.DataFrame"
    """One row per interval of an operation with a constant rate."""
    usages: "pd.DataFrame"
    """One row per operation with a monitored library."""


def frames_of(run: Run) -> Frames:
    """Return the tables of a run as tidy pandas frames."""
    return Frames(
        functions=to_frame(run.functions).rename_axis("function"),
        operations=to_frame(run.operations),
        attempts=to_frame(run.attempts),
        progress=to_frame(run.steps),
        usages=to_frame(run.usages),
    )


def to_frame(table: Table) -> "pd.DataFrame":
    """Return a table as a pandas frame; see ``Frames``.

    Raises
    ------
    PluginError
        If pandas is not installed.
    """
    with extra("frames", "a frame"):
        import pandas as pd
    frame = pd.DataFrame(dict(table))
    for name in table:
        column = frame[name]
        if column.dtype != "int64":
            continue
        absent = column == ABSENT
        if name.endswith("_ns") and name not in _DURATIONS:
            instants = pd.to_datetime(column.mask(absent), utc=True)
            frame = frame.rename(columns={name: name.removesuffix("_ns")})
            frame[name.removesuffix("_ns")] = instants
        elif absent.any():
            frame[name] = column.astype("Int64").mask(absent)
    return frame
