"""Export as PyWren's list of ``(start, stop, MB/s)``, one tuple per function that is ok.

Seconds since the epoch and 10**6 bytes per second (s3_benchmark.py:41).
"""

import pickle
from typing import BinaryIO

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.formats.exporters.base import Exporter
from serverless_bench.metrics.timeline import function_spans
from serverless_bench.rundir.run import Run


def _rows(run: Run) -> list[tuple[float, float, float]]:
    spans = function_spans(run)
    starts, stops = ([ns / NS_PER_S for ns in of.tolist()] for of in (spans.start_ns, spans.end_ns))
    # Use the rounded seconds, like PyWren, so that rate times time equals the bytes.
    return [
        (start_s, stop_s, moved / max(stop_s - start_s, 1e-9) / 1e6)
        for start_s, stop_s, moved in zip(starts, stops, spans.moved.tolist(), strict=True)
    ]


def _write(run: Run, out: BinaryIO) -> None:
    if run.simulated is not None:
        raise UsageError(
            "a pickle of PyWren cannot mark its run as simulated",
            hint="use --format csv, parquet or warp",
        )
    out.write(pickle.dumps(_rows(run)))


EXPORTER = Exporter(write=_write, is_text=False)
