"""The operations as a table with a header; instants are UTC with nanoseconds."""

from typing import BinaryIO

from serverless_bench.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run


def _write(run: Run, out: BinaryIO) -> None:
    operations_frame(run).to_csv(out, index=False, lineterminator="\n")


EXPORTER = Exporter(write=_write, is_text=True)
