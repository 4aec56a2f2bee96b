"""Importer of Lithops' ``os_benchmark.py``: a dict with results and the workers' statistics."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from serverless_bench.features.formats.importers.base import Importer, PickledData, refuse_foreign
from serverless_bench.features.formats.importers.timed import Layout, imported_from


def _recognises(content: object) -> bool:
    if not isinstance(content, PickledData) or not isinstance(content.value, Mapping):
        return False
    results = content.value.get("results")
    return isinstance(results, list | tuple) and (
        "worker_stats" in content.value or any(isinstance(result, Mapping) for result in results)
    )


def _values(path: Path, number: int, result: object) -> Sequence[object]:
    if not isinstance(result, Mapping) or not result.keys() >= _NEEDED:
        refuse_foreign(path, f"result {number} lacks one of {', '.join(sorted(_NEEDED))}")
    return [result.get(name) for name in ("start_time", "end_time", "mb_rate", "bytes_read")]


_NEEDED: Final = frozenset({"start_time", "end_time", "mb_rate"})
_LAYOUT: Final = Layout(
    tool="lithops",
    values=_values,
    # The second names are those of PyWren for IBM Cloud, which Lithops was until 2020.
    stats=("worker_stats", "run_statuses"),
    lists=("keynames", "invoke_statuses"),
    begun="start_time",
    submitted=("host_submit_tstamp", "host_submit_time"),
    collected=(
        *("host_result_done_tstamp", "download_output_timestamp"),
        *("host_status_done_tstamp", "status_done_timestamp"),
    ),
    start=("worker_start_tstamp", "worker_func_start_tstamp", "start_tstamp", "start_time"),
    end=("worker_end_tstamp", "worker_func_end_tstamp", "end_tstamp", "end_time"),
    is_cold=("worker_cold_start", True),
)

IMPORTER = Importer(takes=_recognises, recognises=_recognises, read=partial(imported_from, _LAYOUT))
