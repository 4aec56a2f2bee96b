"""The entry point of a deployed function: it receives an event and stores a record.

All imports are made here, outside the handler, because a cold environment has a separate
initialisation phase; the start and duration of that phase are recorded.
"""

import os
import time  # noqa: TID251 - read before sbench is loaded, clock.py included

_BORN_NS = time.time_ns()
_BEGAN_NS = time.perf_counter_ns()

from collections.abc import Mapping  # noqa: E402 - the imports below are timed
from typing import Any  # noqa: E402

from serverless_bench.base import process  # noqa: E402
from serverless_bench.clients import CLIENTS  # noqa: E402
from serverless_bench.features.remote.delivery import handle_delivery  # noqa: E402

if _CLIENT := os.environ.get("SBENCH_IMPORT_CLIENT"):
    # Otherwise the first invocation would import it. A stack names it.
    CLIENTS.load(_CLIENT)
process.note_birth(_BORN_NS, time.perf_counter_ns() - _BEGAN_NS)


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Run a delivery; AWS Lambda calls this.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec`` with a control target, or a probe's event.
    context
        Lambda's context; its remaining time limits the invocation.

    Returns
    -------
    dict
        A short summary for a waiting caller; the record is in the store. For a probe, its findings.
    """
    return handle_delivery(event, remaining_s=context.get_remaining_time_in_millis() / 1000)
