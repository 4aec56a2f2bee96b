"""The op-log of sai3-bench and s3dlio: warp's first 13 columns.

Its ``first_byte`` is the end of the operation, or empty (s3dlio's OPERATION_LOGGING.md):
it is left out, so that nobody takes it for a latency. Its ``thread`` is the thread of an
asynchronous runtime that happened to end the operation: operations of one thread overlap,
and are dealt out to as many function calls as ran at once.
"""

from serverless_bench.formats.importers.base import Hints, Imported, Importer
from serverless_bench.formats.importers.oplog import OpLog
from serverless_bench.formats.importers.threads import imported_from


def _takes(content: object) -> bool:
    return isinstance(content, OpLog)


def _recognises(content: object) -> bool:
    return isinstance(content, OpLog) and not (content.has_categories or content.first_bytes_differ)


def _read(content: OpLog, hints: Hints) -> Imported:
    return imported_from(content, hints, tool="sai3", trusted=False)


IMPORTER = Importer(takes=_takes, recognises=_recognises, read=_read)
