"""The entry point of a deployed function: an event comes in, a record goes to the store.

Everything is imported here, outside the handler, because a cold environment has its
initialisation for that; when it began and how long it took goes into the record.
"""

import time  # noqa: TID251 - read before anything of ours is loaded, clock.py included

_BORN_NS = time.time_ns()
_BEGAN_NS = time.perf_counter_ns()

from collections.abc import Mapping  # noqa: E402 - what follows is what is timed
from typing import Any  # noqa: E402

from serverless_bench import process  # noqa: E402
from serverless_bench.worker.delivery import handle_delivery  # noqa: E402

process.note_birth(_BORN_NS, time.perf_counter_ns() - _BEGAN_NS)


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - AWS's own
    """Run one delivery; what AWS Lambda calls.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec`` with a control target, or a probe's.
    context
        Lambda's own; its remaining time bounds the invocation.

    Returns
    -------
    dict
        A short summary for a caller that waits; the record is in the store. Of a probe, what it
        has found.
    """
    return handle_delivery(event, remaining_s=context.get_remaining_time_in_millis() / 1000)
