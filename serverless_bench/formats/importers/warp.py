"""warp's op-log, as ``warp --full`` saves it."""

from serverless_bench.formats.importers.threads import oplog_importer

IMPORTER = oplog_importer("warp", trusted=True)
