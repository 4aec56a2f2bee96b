"""Importer of PyWren's ``s3_benchmark.py``: tuples of start, stop and rate, alone or in a dict.

Writes are ``(start, stop, MB/s)``, reads ``(start, stop, MB/s, bytes, md5)``
(s3_benchmark.py:41 and 89). ``sbench write --pickle`` and ``sbench export`` create the former.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from serverless_bench.features.formats.importers.base import Importer, PickledData, refuse_foreign
from serverless_bench.features.formats.importers.timed import Layout, imported_from


def _recognises(content: object) -> bool:
    if not isinstance(content, PickledData):
        return False
    results = content.value.get("results") if isinstance(content.value, dict) else content.value
    return isinstance(results, list | tuple) and all(
        result is None or isinstance(result, list | tuple) for result in results
    )


def _values(path: Path, number: int, result: object) -> Sequence[object]:
    if not isinstance(result, list | tuple) or len(result) not in (3, 5):
        refuse_foreign(path, f"result {number} is not (start, stop, rate)")
    return [*result, None][:4]


_LAYOUT: Final = Layout(
    tool="pywren",
    values=_values,
    stats=("run_statuses",),
    lists=("keynames", "invoke_statuses"),
    begun=None,
    submitted=("host_submit_time",),
    collected=(),
    start=("start_time",),
    end=("end_time",),
    is_cold=("runtime_cached", False),
)

IMPORTER = Importer(takes=_recognises, recognises=_recognises, read=partial(imported_from, _LAYOUT))
