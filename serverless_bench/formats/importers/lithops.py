"""Lithops' ``os_benchmark.py``: a dict with the results and the workers' statistics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from serverless_bench.formats.importers.base import Hints, Imported, Importer, PickledData, refuse
from serverless_bench.formats.importers.timed import (
    Results,
    Stats,
    Timed,
    imported_from,
    sequence,
    timed,
)

_STATS: Final = Stats(
    submitted="host_submit_tstamp",
    collected="host_result_done_tstamp",
    start=("worker_start_tstamp", "worker_func_start_tstamp"),
    end=("worker_end_tstamp", "worker_func_end_tstamp"),
    is_cold=("worker_cold_start", True),
)


def _recognises(content: object) -> bool:
    if not isinstance(content, PickledData) or not isinstance(content.value, Mapping):
        return False
    results = content.value.get("results")
    if not isinstance(results, list | tuple):
        return False
    return "worker_stats" in content.value or any(isinstance(one, Mapping) for one in results)


def _read(content: PickledData, hints: Hints) -> Imported:
    path, data = content.path, content.value
    if not isinstance(data, Mapping):
        raise TypeError("no content that was recognised")
    results = sequence(path, data, "results")
    stats, keys = sequence(path, data, "worker_stats"), sequence(path, data, "keynames")
    return imported_from(
        Results(
            path=path,
            tool="lithops",
            timed=[_timed(path, number, one) for number, one in enumerate(results)],
            stats=stats,
            names=_STATS,
            keys=keys,
            requested=max(len(stats), len(keys)),
            start_s=data.get("start_time"),
            bucket=data.get("bucket_name"),
        ),
        hints,
    )


def _timed(path: Path, number: int, result: object) -> Timed | None:
    if result is None:
        return None
    if not isinstance(result, Mapping):
        refuse(path, f"result {number} is no dict")
    names = ("start_time", "end_time", "mb_rate", "bytes_read")
    return timed(path, number, [result.get(name) for name in names])


IMPORTER = Importer(takes=_recognises, recognises=_recognises, read=_read)
