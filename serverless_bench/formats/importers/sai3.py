"""The op-log of sai3-bench and s3dlio: warp's first 13 columns.

Its ``first_byte`` is the end of the operation, or empty (s3dlio's OPERATION_LOGGING.md):
it is left out, so that nobody takes it for a latency. Its ``thread`` is the thread of an
asynchronous runtime that happened to end the operation: operations of one thread overlap,
and are dealt out to as many function calls as ran at once.
"""

from serverless_bench.formats.importers.threads import oplog_importer

IMPORTER = oplog_importer("sai3", trusted=False)
