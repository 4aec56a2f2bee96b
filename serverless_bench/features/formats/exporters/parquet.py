"""Export of the operations as a Parquet file, through pandas and pyarrow.

pandas imports pyarrow when it writes; the import here reports the missing extra by name.
"""

from typing import BinaryIO

import pyarrow as pa  # noqa: F401 - see above

from serverless_bench.features.formats.exporters.base import Exporter, operations_frame
from serverless_bench.rundir.run import Run


def _write(run: Run, out: BinaryIO) -> None:
    operations_frame(run).to_parquet(out, engine="pyarrow", index=False)


EXPORTER = Exporter(write=_write, is_text=False)
