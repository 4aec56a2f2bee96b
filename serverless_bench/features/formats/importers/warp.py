"""Importer of warp's op-log, as saved by ``warp --full``."""

from serverless_bench.features.formats.importers.threads import oplog_importer

IMPORTER = oplog_importer("warp", trusted=True)
