"""Export of the operations as a table with a header; instants are UTC with nanoseconds."""

from typing import BinaryIO, Final, TypeVar

from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run

T = TypeVar("T")
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that start a formula in a spreadsheet (OWASP, "CSV Injection"), with their full-width
forms; tabs and line ends are already escaped."""


def _write(run: Run, out: BinaryIO) -> None:
    frame = operations_frame(run)
    for name in frame.select_dtypes(["object", "category", "string"]):
        frame[name] = frame[name].map(for_cell, na_action="ignore")
    frame.to_csv(out, index=False, lineterminator="\n")


def for_cell(value: T) -> T | str:
    """Return a CSV cell that a spreadsheet does not take for a formula; numbers stay numbers.

    Examples
    --------
    >>> for_cell("=HYPERLINK(1)"), for_cell(-1.5), for_cell("a-b")
    ("'=HYPERLINK(1)", -1.5, 'a-b')
    """
    if not isinstance(value, str):
        return value
    text = for_terminal(value)
    # Some spreadsheets ignore leading blanks of a cell.
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


EXPORTER = Exporter(write=_write, is_text=True)
