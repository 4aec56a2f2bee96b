"""A worker that polls: it looks for events below the control prefix and runs them.

It runs an event exactly as a deployed function would, one at a time. As with other executors, the
claim decides which worker runs it.
"""

import faulthandler
import json
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import (
    AccessDenied,
    NotFound,
    OperationError,
    SbenchError,
    StoreError,
    last_failure,
    one_line,
)
from serverless_bench.base.process import rest
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.features.remote.claims import for_events
from serverless_bench.features.remote.delivery import RECORD_S, deliver, forget_stores
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.invocation import forget_clients
from serverless_bench.worker.object_io import ObjectIO

_POLL_S: Final = 0.2
"""Pause after a look without an event; it doubles each time, because each look costs a LIST."""
_SLOWEST_POLL_S: Final = 2.0
_EVENT_BYTES: Final = 64 * MIB
"""Size limit of an event, which may hold the keys of a million objects to read."""
_MOST_S: Final = 10.0**7
_REQUEST_S: Final = 30.0
_DELETE_S: Final = 5.0
_TIMEOUT_S: Final = 300.0
"""Time that the control prefix may be unreachable before a worker gives up."""
_GRACE_S: Final = 5.0
"""Extra time for an invocation to stop after its deadline; then the process is ended."""


class Poller:
    """Runs events, one after the other.

    Parameters
    ----------
    control
        Target shared by workers and driver: its prefix is above the folder of the events.
    on_problem
        Called with a line about each event that could not be run.
    """

    def __init__(self, control: Target, on_problem: Callable[[str], object]) -> None:
        self._control = control
        self._on_problem = on_problem
        self._events = ObjectIO(for_events(control))
        self._known: set[str] = set()
        """Names of existing events that this worker must not try again."""
        self._where = f"{control.bucket}/{control.prefix}"
        self._reached = self._has_claimed = False
        self._refused_ns: int | None = None
        """Start of the store's current errors; None while requests succeed."""
        self.stopping = False
        self.ran = self.failed = 0

    def stop(self) -> None:
        """Stop after the current event; a signal handler may call it."""
        self.stopping = True

    def run(self, idle_s: float | None) -> None:
        """Run events until ``stop`` is called, or until there was none for ``idle_s``.

        Raises
        ------
        StoreError
            If the events cannot be read, on the first try or for minutes, or the first event cannot
            be claimed.
        """
        last_event_ns, pause_s = monotonic_ns(), _POLL_S
        while not self.stopping:
            if self._look():
                last_event_ns, pause_s = monotonic_ns(), _POLL_S
                continue
            if idle_s is not None and monotonic_ns() - last_event_ns >= idle_s * NS_PER_S:
                return
            # Add jitter, so that a thousand workers do not poll at the same instant.
            sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(_SLOWEST_POLL_S, 2 * pause_s)

    def close(self) -> None:
        """Close all connections, including those kept for the next event."""
        self._events.close()
        forget_stores()
        forget_clients()

    def _look(self) -> bool:
        """Run an event if there is any; return whether one was run."""
        try:
            ran = self._take_any()
        except OperationError as exc:
            self._tolerate(exc)
            return False
        self._reached, self._refused_ns = True, None
        return ran

    def _take_any(self) -> bool:
        present: set[str] = set()
        for page in self._events.list_pages("", timeout_s=_REQUEST_S):
            present.update(page)
            names = [name for name in page if name not in self._known]
            # Shuffle, so that workers looking at the same time try different events first.
            random.shuffle(names)
            for name in names:
                if self.stopping:
                    return False
                if self._take(name):
                    return True
        self._known &= present
        return False

    def _take(self, name: str) -> bool:
        """Run an event unless another worker has it; return whether it was run."""
        try:
            data = self._events.get(name, most=_EVENT_BYTES, timeout_s=_REQUEST_S)
        except NotFound:
            return False
        except TooLong as exc:
            return self._refuse(name, exc)
        try:
            event = self._read(data)
        except (
            AttributeError,
            KeyError,
            OverflowError,
            RecursionError,
            TypeError,
            ValueError,
            SbenchError,
        ) as exc:
            return self._refuse(name, exc)
        try:
            return self._deliver(name, event)
        except SbenchError:
            raise
        except Exception as exc:  # noqa: BLE001 - one event must not end the worker
            return self._refuse(name, exc)

    def _refuse(self, name: str, exc: Exception) -> bool:
        self._known.add(name)
        self._on_problem(one_line(f"not run: {name[:200]} is not an event for a worker: {exc}"))
        return False

    def _read(self, data: bytes) -> Mapping[str, Any]:
        """Return an event that this worker may run."""
        # Claim with this worker's target, whichever the event names: endpoints have many names.
        event: dict[str, Any] = json.loads(data)
        sse = event["control"].get("sse", "")
        event["control"] = {**asdict(self._control), "sse": sse}
        invocation = InvocationSpec.from_json(event)
        if invocation.load.folder is not None:
            raise ValueError("it would write files on this machine")
        if not 0 < invocation.deadline <= _MOST_S:
            raise ValueError(f"its deadline of {invocation.deadline:g} s is not possible")
        return event

    def _deliver(self, name: str, event: Mapping[str, Any]) -> bool:
        claimed = False

        def withdraw() -> None:
            nonlocal claimed
            claimed = self._has_claimed = True
            # Without permission to delete, leave the event: its claim marks it too, but costs
            # requests.
            with suppress(OperationError):
                self._events.delete(name, etag="", timeout_s=_DELETE_S)

        # An invocation stops by itself at its deadline; a library that hangs does not.
        limit_s = float(event["deadline"]) + RECORD_S + _GRACE_S
        faulthandler.dump_traceback_later(limit_s, exit=True)
        try:
            record, _ = deliver(event, withdraw=withdraw)
        except OperationError as exc:
            part = "record" if claimed else "claim"
            self._on_problem(f"{name}: its {part} could not be written: {exc}")
            # After the first successful claim, an error may be caused by the event itself.
            if not self._has_claimed and isinstance(last_failure(exc), AccessDenied):
                raise StoreError(
                    f"events below {self._where} cannot be claimed: {exc}",
                    hint="check that these credentials permit PutObject with If-None-Match",
                ) from exc
            return False
        finally:
            faulthandler.cancel_dump_traceback_later()
            rest()
        self._known.add(name)
        if record is None:
            return False
        self.ran += 1
        self.failed += not record.ok
        return True

    def _tolerate(self, error: OperationError) -> None:
        """Tolerate errors of the store for a while; credentials may be renewed."""
        now_ns = monotonic_ns()
        self._refused_ns = self._refused_ns or now_ns
        if not self._reached or now_ns - self._refused_ns > _TIMEOUT_S * NS_PER_S:
            raise StoreError(
                f"the events below {self._where} cannot be read: {error}",
                hint=error.hint or "check --control and the permissions of these credentials",
            ) from error
        self._events.renew()
