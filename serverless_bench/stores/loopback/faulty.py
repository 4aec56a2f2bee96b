"""A connection whose requests meet limits and planned faults."""

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from serverless_bench.clock import monotonic_ns
from serverless_bench.job.keys import declared_size
from serverless_bench.stores.loopback.answers import S3Error
from serverless_bench.stores.loopback.connection import Connection
from serverless_bench.stores.loopback.faults import Fault, FaultKind
from serverless_bench.stores.loopback.inspector import Inspector, Verdict

REFUSALS: Final[Mapping[FaultKind, tuple[int, str, str]]] = {
    FaultKind.SLOWDOWN: (503, "SlowDown", "Please reduce your request rate."),
    FaultKind.ERROR: (500, "InternalError", "We encountered an internal error."),
    FaultKind.MISSING: (404, "NoSuchKey", "The specified key does not exist."),
}
"""Faults that are an answer and nothing more."""


class FaultyConnection(Connection):
    """What every operation works with."""

    def meet_limits(self, name: str) -> None:
        """Refuse a request that is one too many for its prefix.

        Raises
        ------
        S3Error
            If it is.
        """
        asked = self.asked
        prefix = f"{asked.bucket}/{asked.key.rpartition('/')[0]}"
        now_ns = monotonic_ns()
        if asked.key and not self.server.shaper.admits(prefix, write=asked.writes, now_ns=now_ns):
            self.server.counts.add(limited=1)
            self._note("limit", "put" if asked.writes else "get", name)
            raise S3Error(*REFUSALS[FaultKind.SLOWDOWN])

    def meet_fault(self, name: str) -> None:
        """Find out what is to go wrong with a request.

        Raises
        ------
        S3Error
            If that is an answer.
        """
        self._name = name
        self.fault: Fault | None = None
        # Only objects of a benchmark fail; markers and the like are no part of one.
        if declared_size(self.asked.key) is None:
            return
        where = str(self.asked.part or self.asked.headers.get("range", ""))
        self.fault = self.server.plan.decide(name, self.asked.key, where)
        if self.fault and self.fault.kind in REFUSALS:
            self.inject(self.fault)
            raise S3Error(*REFUSALS[self.fault.kind])

    def inject(self, fault: Fault, **more: Any) -> None:  # noqa: ANN401 - anything that JSON has
        """Write a fault to the log, just before the client meets it."""
        self.server.counts.fault(fault.kind)
        self.sight.fault = fault.kind
        self._note("fault", fault.kind, self._name, number=fault.number, **more)

    def receive_upload(self, *, offset: int | None) -> Verdict:
        """Receive an upload, or the share of it that comes before a reset.

        Parameters
        ----------
        offset
            Where in the object it has to begin; None for a part.

        Raises
        ------
        S3Error
            If its bytes are wrong.
        """
        inspector = Inspector(self.asked.key, offset=offset, looks=self.server.looks)
        fault = self.fault
        if fault and fault.kind is FaultKind.RESET_PUT:
            size = self.open_body().size or declared_size(self.asked.key) or 1
            came = self.receive(inspector, fault.cut(size))
            self.inject(fault, received_bytes=came)
            self.hang_up(reset=True)
        self.receive(inspector)
        verdict = inspector.verdict()
        self.sight.offset = verdict.offset
        self.server.counts.add(checked_put_bytes=verdict.checked_bytes)
        if verdict.bad_bytes:
            self.spoiled(verdict, f"{verdict.bad_bytes} bytes are not those of the key")
        return verdict

    def spoiled(self, verdict: Verdict, message: str) -> NoReturn:
        """Refuse an upload for its bytes.

        Raises
        ------
        S3Error
            Always.
        """
        bad = verdict.bad_bytes or verdict.size
        self.server.counts.add(bad_puts=1, bad_put_bytes=bad)
        raise S3Error(400, "BadDigest", message)

    def _note(self, event: str, kind: str, name: str, **more: Any) -> None:  # noqa: ANN401 - as above
        asked = self.asked
        self.server.log.add(
            event=event,
            kind=kind,
            request=name,
            request_id=self.request_id,
            bucket=asked.bucket,
            key=asked.key,
            part=asked.part,
            range=asked.headers.get("range"),
            **more,
        )
