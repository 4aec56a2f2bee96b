"""warp's op-log, as ``warp --full`` saves it."""

from serverless_bench.formats.importers.base import Hints, Imported, Importer
from serverless_bench.formats.importers.oplog import OpLog
from serverless_bench.formats.importers.threads import imported_from


def _takes(content: object) -> bool:
    return isinstance(content, OpLog)


def _recognises(content: object) -> bool:
    return isinstance(content, OpLog) and (content.has_categories or content.first_bytes_differ)


def _read(content: OpLog, hints: Hints) -> Imported:
    return imported_from(content, hints, tool="warp", trusted=True)


IMPORTER = Importer(takes=_takes, recognises=_recognises, read=_read)
