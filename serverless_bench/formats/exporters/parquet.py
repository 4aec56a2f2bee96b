"""The operations as a Parquet file, through pandas and pyarrow.

pandas looks for pyarrow when it writes; here its absence names the extra that has it.
"""

from typing import BinaryIO

import pyarrow as pa  # noqa: F401 - see above

from serverless_bench.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run


def _write(run: Run, out: BinaryIO) -> None:
    operations_frame(run).to_parquet(out, engine="pyarrow", index=False)


EXPORTER = Exporter(write=_write, is_text=False)
