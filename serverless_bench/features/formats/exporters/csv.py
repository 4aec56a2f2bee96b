"""Export of the operations as a table with a header; instants are UTC with nanoseconds."""

from typing import BinaryIO

from serverless_bench.base.escaping import for_cell
from serverless_bench.features.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run


def _write(run: Run, out: BinaryIO) -> None:
    frame = operations_frame(run)
    for name in frame.select_dtypes(["object", "category", "string"]):
        frame[name] = frame[name].map(for_cell, na_action="ignore")
    frame.to_csv(out, index=False, lineterminator="\n")


EXPORTER = Exporter(write=_write, is_text=True)
