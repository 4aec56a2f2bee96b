"""PyWren's ``s3_benchmark.py``: tuples of start, stop and rate, alone or in a dict.

Writes are ``(start, stop, MB/s)``, reads ``(start, stop, MB/s, bytes, md5)``
(s3_benchmark.py:41 and 89). ``sbench write --pickle`` and ``sbench export`` make the first.
"""

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
    submitted="host_submit_time",
    collected=None,
    start=("start_time",),
    end=("end_time",),
    is_cold=("runtime_cached", False),
)
_LENGTHS: Final = (3, 5)


def _recognises(content: object) -> bool:
    if not isinstance(content, PickledData):
        return False
    results = content.value.get("results") if isinstance(content.value, dict) else content.value
    return isinstance(results, list | tuple) and all(
        one is None or isinstance(one, list | tuple) for one in results
    )


def _read(content: PickledData, hints: Hints) -> Imported:
    path = content.path
    data = content.value if isinstance(content.value, Mapping) else {"results": content.value}
    results = sequence(path, data, "results")
    stats, keys = sequence(path, data, "run_statuses"), sequence(path, data, "keynames")
    invoked = sequence(path, data, "invoke_statuses")
    return imported_from(
        Results(
            path=path,
            tool="pywren",
            timed=[_timed(path, number, one) for number, one in enumerate(results)],
            stats=stats,
            names=_STATS,
            keys=keys,
            requested=max(len(stats), len(keys), len(invoked)),
            start_s=None,
            bucket=data.get("bucket_name"),
        ),
        hints,
    )


def _timed(path: Path, number: int, result: object) -> Timed | None:
    if result is None:
        return None
    if not isinstance(result, list | tuple) or len(result) not in _LENGTHS:
        refuse(path, f"result {number} is not (start, stop, rate)")
    return timed(path, number, [*result, None][:4])


IMPORTER = Importer(takes=_recognises, recognises=_recognises, read=_read)
