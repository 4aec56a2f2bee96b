"""Requests of the driver during the fan-out: read the store's clock, and do what policies ask."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Final, Self

from serverless_bench.base.clock import Clock, http_date_s
from serverless_bench.base.errors import SbenchError
from serverless_bench.driver.bucket import Bucket, open_bucket
from serverless_bench.driver.plan import uses_store
from serverless_bench.driver.policy import driver_policies_of
from serverless_bench.driver.store_errors import explained
from serverless_bench.job.spec import JobSpec

_PROBES: Final = 20
_PROBE_EVERY_S: Final = 0.053
"""Spread over all phases of a second, so that some responses are close to the start of a second:
these bound the store's clock within one round trip.
"""
_JOIN_S: Final = 15.0


class Coordinator:
    """A thread that runs during the fan-out; use it as a context manager.

    It is idle for a workload without operations. If a step fails (the store does not respond, or
    denies listing), its result is missing in the report and the run continues: without a start
    signal the functions start on their own and record that.

    Parameters
    ----------
    job, run_id
        Job with the target, and the identifier of the run.
    clock
        Clock of the driver.
    """

    def __init__(self, job: JobSpec, run_id: str, clock: Clock) -> None:
        self.job = job
        """The final job, after the concurrency is known."""
        self.note_keys: Sequence[str] = ()
        """Keys of notes of policies; their objects are deleted at the end."""
        self.run_id = run_id
        self.clock = clock
        self.over = threading.Event()
        """Set when the fan-out ends."""
        self.noted: dict[str, Any] = {"probes": []}
        """Part of the report; policies add to it."""
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
            parts = [policy.coordinate(self, bucket) for policy in driver_policies_of(self.job)]
            self._thread = threading.Thread(target=self._run, args=(bucket, parts), daemon=True)
            try:
                self._thread.start()
            except KeyboardInterrupt:
                # The thread may have started, and ``__exit__`` is not called after this.
                self.over.set()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        if self.note_keys:
            # The notes are in the ledger; `sbench clean` deletes those that cannot be
            # deleted now.
            with suppress(SbenchError):
                # The deletion looks for open uploads with botocore.
                from serverless_bench.driver.cleanup import delete

                done = delete(replace(self.job.target, store=None), self.note_keys)
                self._requests.update({n: done.requests[n] for n in ("get", "list")})

    def report(self) -> Mapping[str, Any]:
        """Return the coordinator's part of the archive's last line.

        ``probes`` and ``store_requests`` are defined in ``archive.Run``.
        """
        counted = {"store_requests": dict(self._requests)} if self._requests else {}
        return self.noted | counted

    def _run(self, bucket: Bucket, parts: Sequence[Iterator[None]]) -> None:
        # If the store does not respond, the report stays empty.
        with suppress(SbenchError), explained(self.job.target), closing(bucket):
            for part in parts:
                next(part, None)
            for _ in range(_PROBES - 1):
                self._probe(bucket)
                if self.over.wait(_PROBE_EVERY_S):
                    # A short run needs a bound, too: this probe was made at its end.
                    break
            for part in parts:
                next(part, None)

    def _probe(self, bucket: Bucket) -> None:
        sent_ns = self.clock.now_ns()
        date = bucket.ask()
        received_ns = self.clock.now_ns()
        date_s = http_date_s(date)
        if date_s is not None:
            self.noted["probes"].append((sent_ns, received_ns, date_s))
