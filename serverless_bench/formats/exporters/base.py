"""What an exporter is, and the table that two of them write."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from serverless_bench.rundir.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """One format."""

    write: Callable[[Run, BinaryIO], None]
    """Write a run, loaded with its details."""
    is_text: bool
    """Whether it may go to a terminal."""


def operations_frame(run: Run) -> "pd.DataFrame":
    """Return all operations of a run as one tidy table.

    Returns
    -------
    pandas.DataFrame
        ``Frames.operations``, with ``invocation``, ``status`` and ``worker_id`` of the
        function call that each operation belongs to. Only operations of functions that
        are ok or failed count; those of duplicates are there, too. Of a run that was
        simulated, ``simulated`` says with which model.

    Raises
    ------
    PluginError
        If pandas is not installed.
    """
    frames = run.frames()
    functions = frames.functions[["index", "status", "worker_id"]]
    functions = functions.rename(columns={"index": "invocation"})
    found = frames.operations.join(functions, on="function").drop(columns="function")
    return found if run.simulated is None else found.assign(simulated=run.simulated)
