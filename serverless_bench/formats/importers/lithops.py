"""Importer of Lithops' ``os_benchmark.py``: a dict with results and the workers' statistics."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from serverless_bench.formats.importers.base import Importer, PickledData, refuse
from serverless_bench.formats.importers.timed import Layout, imported_from


def _recognises(content: object) -> bool:
    if not isinstance(content, PickledData) or not isinstance(content.value, Mapping):
        return False
    results = content.value.get("results")
    if not isinstance(results, list | tuple):
        return False
    return "worker_stats" in content.value or any(isinstance(result, Mapping) for result in results)


def _values(path: Path, number: int, result: object) -> Sequence[object]:
    if not isinstance(result, Mapping):
        refuse(path, f"result {number} is not a dict")
    return [result.get(name) for name in ("start_time", "end_time", "mb_rate", "bytes_read")]


_LAYOUT: Final = Layout(
    tool="lithops",
    values=_values,
    lists=("worker_stats", "keynames"),
    begun="start_time",
    submitted="host_submit_tstamp",
    collected="host_result_done_tstamp",
    start=("worker_start_tstamp", "worker_func_start_tstamp"),
    end=("worker_end_tstamp", "worker_func_end_tstamp"),
    is_cold=("worker_cold_start", True),
)

IMPORTER = Importer(takes=_recognises, recognises=_recognises, read=partial(imported_from, _LAYOUT))
