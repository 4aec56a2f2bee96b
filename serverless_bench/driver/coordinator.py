"""Requests of the driver during the fan-out: read the store's clock, and open the gate."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Final, Self

from serverless_bench.base.clock import Clock, http_date_s
from serverless_bench.base.errors import SbenchError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.bucket import Bucket, open_bucket
from serverless_bench.driver.plan import uses_store
from serverless_bench.driver.store_errors import explained
from serverless_bench.features.barrier.barrier import MARK, folder, start_key
from serverless_bench.job.spec import JobSpec

_PROBES: Final = 20
_PROBE_EVERY_S: Final = 0.053
"""Spread over all phases of a second, so that some responses are close to the start of a second:
these bound the store's clock within one round trip.
"""
_LOOK_EVERY_S: Final = 0.2
_LOOK_LATER_S: Final = 0.5
"""Interval for the first function of a batch while the previous batch runs; each look is a LIST
request.
"""
_LEAD_S: Final = 0.25
_JOIN_S: Final = 15.0


class Coordinator:
    """A thread that runs during the fan-out; use it as a context manager.

    It is idle for a workload without operations. If a step fails (the store does not respond, or
    denies listing), its result is missing in the report and the run continues: without a start
    signal the functions start on their own and record that.

    Parameters
    ----------
    job, run_id
        Job with the gate and the target, and the identifier of the run.
    clock
        Clock of the driver.
    """

    def __init__(self, job: JobSpec, run_id: str, clock: Clock) -> None:
        self.job = job
        """The final job, after the concurrency is known."""
        self.gate_keys: Sequence[str] = ()
        """Keys that the gate may create; their objects are deleted at the end."""
        self._run_id = run_id
        self._clock = clock
        self._over = threading.Event()
        self._report: dict[str, Any] = {"probes": []}
        self._requests: Counter[str] = Counter()
        self._thread: threading.Thread | None = None

    def reach(self) -> None:
        """Read the store's clock once, before any function is launched or object written.

        Raises
        ------
        StoreError
            If the store does not respond, or the bucket is missing or access to it is denied.
        """
        if uses_store(self.job):
            with open_bucket(self.job.target, self._requests) as bucket:
                self._probe(bucket)

    def __enter__(self) -> Self:
        if uses_store(self.job):
            # Open the bucket here and not in the thread: to find credentials, botocore iterates
            # over the environment, and a client under test may set a variable at the same time.
            bucket = Bucket(self.job.target, self._requests)
            self._thread = threading.Thread(target=self._run, args=(bucket,), daemon=True)
            try:
                self._thread.start()
            except KeyboardInterrupt:
                # The thread may have started, and ``__exit__`` is not called after this.
                self._over.set()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        if self.job.gate is not None:
            # The gate's objects are in the ledger; `sbench clean` deletes those that cannot be
            # deleted now.
            with suppress(SbenchError):
                # The deletion looks for open uploads with botocore.
                from serverless_bench.driver.cleanup import delete

                done = delete(replace(self.job.target, store=None), self.gate_keys)
                self._requests.update({n: done.requests[n] for n in ("get", "list")})

    def report(self) -> Mapping[str, Any]:
        """Return the coordinator's part of the archive's last line.

        ``probes`` and ``store_requests`` are defined in ``archive.Run``. ``gate`` has ``expected``
        and ``announced`` functions of all ``batches`` that started, and ``opened_ns`` (driver's
        clock) and ``waited_s`` of the first batch.
        """
        counted = {"store_requests": dict(self._requests)} if self._requests else {}
        return self._report | counted

    def _run(self, bucket: Bucket) -> None:
        # If the store does not respond, the report stays empty.
        with suppress(SbenchError), explained(self.job.target), closing(bucket):
            job = self.job
            batches = range(0, job.number, job.concurrency) if job.gate is not None else ()
            for first in batches[:1]:
                self._open_gate(bucket, first)
            for _ in range(_PROBES - 1):
                self._probe(bucket)
                if self._over.wait(_PROBE_EVERY_S):
                    # A short run needs a bound, too: this probe was made at its end.
                    break
            for first in batches[1:]:
                self._open_gate(bucket, first)

    def _probe(self, bucket: Bucket) -> None:
        sent_ns = self._clock.now_ns()
        date = bucket.ask()
        received_ns = self._clock.now_ns()
        date_s = http_date_s(date)
        if date_s is not None:
            self._report["probes"].append((sent_ns, received_ns, date_s))

    def _open_gate(self, bucket: Bucket, first: int) -> None:
        """Open the gate of the batch at index ``first`` when the functions are ready."""
        job, prefix = self.job, self.job.target.prefix
        place = folder(prefix, self._run_id)
        batch = range(first, min(first + job.concurrency, job.number))
        expected = max(1, -(-round(len(batch) * (job.gate or 0.0) * 1000) // 1000))
        began_ns = self._clock.now_ns()
        # A later batch starts after the previous batch, without a limit of time.
        deadline_ns = None if first else self._deadline_ns()
        announced = 0
        while announced < expected and (deadline_ns is None or self._clock.now_ns() < deadline_ns):
            if self._over.wait(_LOOK_LATER_S if deadline_ns is None else _LOOK_EVERY_S):
                return
            names = (key.removeprefix(place) for key in bucket.keys(place))
            announced = sum(name.isdigit() and int(name) in batch for name in names)
            if announced and deadline_ns is None:
                deadline_ns = self._deadline_ns()
        # Every function has seen it by then.
        instant_ns = self._clock.now_ns() + round((_LEAD_S + 2 * job.gate_poll_s) * NS_PER_S)
        bucket.put(start_key(prefix, self._run_id, first), MARK + str(instant_ns).encode())
        opened_ns = self._clock.now_ns()
        gate = self._report.setdefault(
            "gate",
            {
                **dict.fromkeys(("expected", "announced", "batches"), 0),
                "opened_ns": opened_ns,
                "waited_s": (opened_ns - began_ns) / NS_PER_S,
            },
        )
        for name, count in {"expected": expected, "announced": announced, "batches": 1}.items():
            gate[name] += count

    def _deadline_ns(self) -> int:
        return self._clock.now_ns() + round(self.job.gate_timeout * NS_PER_S)
