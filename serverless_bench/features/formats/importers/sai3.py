"""Importer of the op-log of sai3-bench and s3dlio, with warp's first 13 columns.

Its ``first_byte`` is the end of the operation, or empty (s3dlio's OPERATION_LOGGING.md), and is
dropped so that it is not mistaken for a latency. Its ``thread`` is the thread of an asynchronous
runtime that happened to end the operation. Operations of a thread therefore overlap, and are
distributed over as many function calls as ran at the same time.
"""

from serverless_bench.features.formats.importers.threads import oplog_importer

IMPORTER = oplog_importer("sai3", trusted=False)
