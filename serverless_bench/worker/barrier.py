"""The start barrier: every invocation announces itself and waits for one object.

Both sides use nothing but the store under test: an invocation writes
``PREFIX RUN/gate/INDEX`` and polls ``PREFIX RUN/gate/start`` until it is there; the
driver lists the announcements and writes that object. What waiting costs is in the
record. Invocations begin within one poll of each other. Where more are asked for than may
be alive at once, each batch has a start of its own: ``start-INDEX``, after its first.
"""

import random
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from serverless_bench.clients.base import Client
from serverless_bench.clock import monotonic_ns, sleep
from serverless_bench.errors import AccessDenied, NotFound, OperationError
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from serverless_bench.worker.retry import Retrier

_GATE_KEY: Final = re.compile(r".*/gate/(?:start(?:-[0-9]+)?|[0-9]+)", re.DOTALL)
_TIMEOUT_S: Final = 5.0
"""An invocation waits this much longer than the driver does: its clock began later."""


def folder(prefix: str, run_id: str) -> str:
    """Return what the keys of a run's start barrier begin with."""
    return f"{prefix}{run_id}/gate/"


def start_key(prefix: str, run_id: str, first: int = 0) -> str:
    """Return the key whose object opens the barrier of the batch that begins with an index."""
    return folder(prefix, run_id) + (f"start-{first}" if first else "start")


def is_gate_key(key: str) -> bool:
    """Return whether a key is of a start barrier; no other key of a run ends like one."""
    return _GATE_KEY.fullmatch(key) is not None


def gate_keys(invocation: InvocationSpec) -> Iterator[str]:
    """Yield the keys that the barrier may create for an invocation, for the run's ledger."""
    if invocation.gate_poll_s is not None:
        prefix, run_id = invocation.target.prefix, invocation.run_id
        if invocation.index == invocation.gate_from:
            yield start_key(prefix, run_id, invocation.gate_from)
        yield folder(prefix, run_id) + str(invocation.index)


def pass_barrier(invocation: InvocationSpec, client: Client, rng: random.Random) -> dict[str, int]:
    """Announce this invocation and return when the start is there.

    After its timeout it begins without the start. It is late if the start was there before it
    was, or never came.

    Returns
    -------
    dict
        How it passed the barrier: fields of its record.

    Raises
    ------
    OperationError
        If the announcement cannot be written.
    """
    if invocation.gate_poll_s is None:
        raise ValueError("this invocation has no start barrier")
    began_ns = monotonic_ns()
    prefix, run_id = invocation.target.prefix, invocation.run_id
    deadline_ns = began_ns + round((invocation.gate_timeout + _TIMEOUT_S) * NS_PER_S)
    retrier = Retrier(client, invocation.transfer.retries, deadline_ns, rng)
    key = folder(prefix, run_id) + str(invocation.index)
    retrier.run("put", partial(client.put, key, MemorySource(b"+")))
    start = start_key(prefix, run_id, invocation.gate_from)
    polls, late = 0, True
    while monotonic_ns() < deadline_ns:
        if _is_open(start, client, retrier):
            late = not polls
            break
        polls += 1
        # Jittered, so that a thousand functions do not poll at one instant.
        sleep(invocation.gate_poll_s * rng.uniform(0.8, 1.2))
    billed = retrier.billed()
    return {
        "gate_wait_ns": monotonic_ns() - began_ns,
        "gate_late": late,
        "gate_puts": billed["put"],
        "gate_gets": billed["get"],
    }


def _is_open(key: str, client: Client, retrier: Retrier) -> bool:
    try:
        retrier.run("get", partial(client.get, key, MemorySink()))
    except OperationError as exc:
        # Who may not list is told 403 as long as it is not there (Amazon S3 API, "GetObject").
        if not exc.retryable and not isinstance(exc, AccessDenied | NotFound):
            raise
        return False
    return True
