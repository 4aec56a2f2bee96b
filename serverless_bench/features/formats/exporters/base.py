"""Definition of an exporter, and the table that two exporters write."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from serverless_bench.features.formats.frames import frames_of
from serverless_bench.rundir.run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """An output format."""

    write: Callable[[Run, BinaryIO], None]
    """Function that writes a run, loaded with details."""
    is_text: bool
    """Whether the output may go to a terminal."""


def operations_frame(run: Run) -> "pd.DataFrame":
    """Return all operations of a run as one tidy table.

    Returns
    -------
    pandas.DataFrame
        ``Frames.operations``, with ``invocation``, ``status`` and ``worker_id`` of the
        function call of each operation. Only functions that are ok or failed are included,
        and so are duplicates. For a simulated run, ``simulated`` is the name of the model.

    Raises
    ------
    PluginError
        If pandas is not installed.
    """
    frames = frames_of(run)
    functions = frames.functions[["index", "status", "worker_id"]]
    functions = functions.rename(columns={"index": "invocation"})
    frame = frames.operations.join(functions, on="function").drop(columns="function")
    return frame if run.simulated is None else frame.assign(simulated=run.simulated)
