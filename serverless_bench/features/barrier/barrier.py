"""The start barrier: each invocation announces itself and waits for an object to appear.

Both sides use only the store under test: an invocation writes ``PREFIX RUN/barrier/INDEX`` and
polls ``PREFIX RUN/barrier/start`` until it exists; the driver lists the announcements and then
writes that object. The cost of waiting is recorded. Invocations start within one poll of each
other. If a job has more functions than may run at once, each later batch has a separate start
object: ``start-INDEX``, with the index of its first function.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import AccessDenied, NotFound, OperationError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Client
from serverless_bench.features.barrier.policy import NAME, folder, start_key
from serverless_bench.job.keys import MAX_NOTE_BYTES, NOTE
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from serverless_bench.worker.retry import Retrier

_TIMEOUT_S: Final = 5.0
"""Extra seconds that an invocation waits beyond the driver's timeout: its clock started later."""


def pass_barrier(
    invocation: InvocationSpec,
    client: Client,
    rng: random.Random,
    is_run_over: Callable[[], bool] = lambda: False,
) -> tuple[dict[str, int], int | None]:
    """Announce this invocation and return when the start object exists.

    After the timeout the invocation starts anyway. It is late if the start object existed before
    the invocation first looked for it, or never appeared.

    Returns
    -------
    tuple
        Fields of the invocation's record: the wait, whether it was late, and the billed requests;
        and the common instant, in nanoseconds since the epoch by the driver's clock, if it is
        known.

    Raises
    ------
    OperationError
        If the announcement cannot be written.
    """
    barrier = invocation.options[NAME]
    start_ns = monotonic_ns()
    prefix, run_id = invocation.target.prefix, invocation.run_id
    deadline_ns = start_ns + round((barrier["timeout_s"] + _TIMEOUT_S) * NS_PER_S)
    retrier = Retrier(client, invocation.transfer.retries, deadline_ns, rng)
    key = folder(prefix, run_id) + str(invocation.index)
    retrier.run("put", partial(client.put, key, MemorySource(NOTE)))
    start = start_key(prefix, run_id, barrier["first"])
    polls, late = 0, True
    content: bytes | None = None
    while monotonic_ns() < deadline_ns and not is_run_over():
        if (content := _opened(start, client, retrier)) is not None:
            late = not polls
            break
        polls += 1
        # Add jitter, so that a thousand functions do not poll at the same instant.
        sleep(barrier["poll_s"] * rng.uniform(0.8, 1.2))
    billed = retrier.billed()
    fields = {
        "barrier_wait_ns": monotonic_ns() - start_ns,
        "barrier_late": late,
        "barrier_puts": billed["put"],
        "barrier_gets": billed["get"],
    }
    return fields, int(content) if content and content[1:].isdigit() else None


def _opened(key: str, client: Client, retrier: Retrier) -> bytes | None:
    """Return the content of the start object, which is digits after a plus; None without one."""
    sink = MemorySink(MAX_NOTE_BYTES)
    try:
        retrier.run("get", partial(client.get, key, sink))
    except OperationError as exc:
        # Without permission to list, a missing object gives 403 (Amazon S3 API, "GetObject").
        if not exc.retryable and not isinstance(exc, AccessDenied | NotFound):
            raise
        return None
    return bytes(sink.data)
