"""The operations as a Parquet file, through pandas and pyarrow."""

from importlib import import_module
from typing import BinaryIO

from serverless_bench.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run

# pandas asks for it when it writes; its absence has to name the extra that has it.
import_module("pyarrow")


def _write(run: Run, out: BinaryIO) -> None:
    frame = operations_frame(run)
    frame.to_parquet(out, engine="pyarrow", index=False)


EXPORTER = Exporter(write=_write, is_text=False)
