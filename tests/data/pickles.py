"""Results in the shapes that PyWren and Lithops save, with known answers."""

from collections.abc import Sequence
from typing import Any

BEGIN_S = 1_600_000_000.0
MB = 10**6


def tuples(count: int = 4, *, size: int = 512 * MB, read: bool = False) -> list[tuple[Any, ...]]:
    """Function ``i`` starts at ``i`` s and takes ``4 + i`` s."""
    rows: list[tuple[Any, ...]] = []
    for i in range(count):
        start, stop = BEGIN_S + i, BEGIN_S + i + 4 + i
        rate = size / (stop - start) / 1e6
        rows.append((start, stop, rate, size, "0" * 32) if read else (start, stop, rate))
    return rows


def lithops(
    timed: Sequence[tuple[Any, ...]], *, read: bool = True, keys: int | None = None
) -> dict[str, Any]:
    """Lithops' dict; every function was submitted 2 s before its result and had 0.5 s around it."""
    names = ("start_time", "end_time", "mb_rate", "bytes_read")
    data = {
        "start_time": BEGIN_S - 3,
        "total_time": 60.0,
        "worker_stats": [
            {
                "host_submit_tstamp": row[0] - 2,
                "worker_start_tstamp": row[0] - 0.5,
                "worker_func_start_tstamp": row[0] - 0.01,
                "worker_func_end_tstamp": row[1] + 0.01,
                "worker_end_tstamp": row[1] + 0.5,
                "host_status_done_tstamp": row[1] + 1,
                "host_result_done_tstamp": row[1] + 2,
                "worker_cold_start": i % 2 == 0,
            }
            for i, row in enumerate(timed)
        ],
        "results": [dict(zip(names, row[: 4 if read else 3], strict=False)) for row in timed],
    }
    if keys is not None:
        data |= {"bucket_name": "b", "keynames": [f"{i:032X}" for i in range(keys)]}
    return data
