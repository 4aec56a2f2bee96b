"""PyWren's list of ``(start, stop, MB/s)``, one tuple per function that is ok.

Seconds since the epoch and 10**6 bytes per second (s3_benchmark.py:41).
"""

import pickle
from pathlib import Path
from typing import BinaryIO

import numpy as np

from serverless_bench.archive import Run
from serverless_bench.columns import is_text
from serverless_bench.exporters.base import Exporter
from serverless_bench.series import good_operations
from serverless_bench.units import NS_PER_S


def write_pickle(run: Run, path: Path) -> None:
    """Write the pickle of a run to a file."""
    path.write_bytes(pickle.dumps(_rows(run)))


def _rows(run: Run) -> list[tuple[float, float, float]]:
    operations, good = run.operations, good_operations(run)
    ok = is_text(run.functions["status"], "ok")
    good &= ok[operations["function"]]
    row = operations["function"][good]
    first = np.full(len(ok), np.iinfo(np.int64).max)
    last = np.full(len(ok), np.iinfo(np.int64).min)
    moved = np.zeros(len(ok), dtype=np.int64)
    np.minimum.at(first, row, operations["start_ns"][good])
    np.maximum.at(last, row, operations["end_ns"][good])
    np.add.at(moved, row, operations["bytes"][good])
    there = np.unique(row)
    return [_row(int(first[i]) / NS_PER_S, int(last[i]) / NS_PER_S, int(moved[i])) for i in there]


def _row(start_s: float, stop_s: float, moved: int) -> tuple[float, float, float]:
    # Over the rounded seconds, as PyWren does: rate times time is the bytes again.
    return start_s, stop_s, moved / max(stop_s - start_s, 1e-9) / 1e6


def _write(run: Run, out: BinaryIO) -> None:
    out.write(pickle.dumps(_rows(run)))


EXPORTER = Exporter(write=_write, is_text=False)
