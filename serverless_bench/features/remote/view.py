"""The driver's view of a run's control prefix; every method waits for the network.

It also tracks the records that the driver has requested.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.base.clock import Clock, http_date_s
from serverless_bench.base.errors import BadResponse, OperationError, StoreError
from serverless_bench.base.units import KIB, MIB, NS_PER_S
from serverless_bench.executors.base import read_record
from serverless_bench.features.remote.claims import (
    RecordKey,
    before,
    claim,
    claim_name,
    for_run,
    get_claim,
    parse_record,
    read_refusal,
    record_name,
)
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import InvocationRecord, Lost
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import MOST_PAGES, ObjectIO

_FOLDER: Final = "records/"
_RECORD_BYTES: Final = 512 * MIB
"""A million small objects with a request each produce 400 MB."""
_REFUSAL_BYTES: Final = 4 * KIB
_REQUEST_S: Final = 60.0
"""Time limit of a request with all of its attempts."""
_MOST_FURTHER: Final = 100_000
"""Maximum number of deliveries other than the first of each index: no queue delivers this often,
but anybody with write access may write records."""
SKEW_S: Final = 2.0
"""Clock offset that is tolerated without a note."""


class ControlView(ObjectIO):
    """Claims and records of a run; threads may share it.

    Parameters
    ----------
    control
        The job's control target.
    run_id
        Id of the run.
    """

    def __init__(self, control: Target, run_id: str) -> None:
        self.url = control.url
        self._where = f"{control.bucket}/{control.prefix}"
        self._run_id = run_id
        super().__init__(for_run(control, run_id))

    def reach(self, clock: Clock) -> int:
        """Check that the prefix can be listed, and return the lead of the driver's clock in ns.

        The result is 0 if the offset is below the resolution of the store's whole seconds.

        Raises
        ------
        StoreError
            If the prefix cannot be listed.
        """
        try:
            self._page("")
        except OperationError as exc:
            raise StoreError(
                f"the control prefix {self._where} cannot be listed: {exc}",
                hint="check `control_prefix`, `stack`, and the permissions of these credentials",
            ) from exc
        date_s = http_date_s(self.date)
        if date_s is None:
            return 0
        ahead_s = clock.now_ns() / NS_PER_S - date_s - 0.5
        return round(ahead_s * NS_PER_S) if abs(ahead_s) > SKEW_S else 0

    def records(self, targets: Sequence[int]) -> Iterator[list[RecordKey]]:
        """Yield records from the first target on, page by page, skipping ranges between targets.

        Parameters
        ----------
        targets
            Sorted indexes of the wanted records.
        """
        after = before(targets[0])
        for _ in range(MOST_PAGES):
            names, is_truncated = self._page(after)
            keys = _parsed(names)
            yield keys
            if not is_truncated:
                return
            last_name = names[-1]
            if keys:
                last = keys[-1].index
                position = bisect_left(targets, last)
                if position == len(targets):
                    return
                if targets[position] > last:
                    last_name = before(targets[position])
            if last_name <= after:
                raise BadResponse("the store lists the same keys repeatedly", status=200)
            after = last_name
        raise BadResponse("the list of records is too long", status=200)

    def records_of(self, index: int) -> list[RecordKey]:
        """Return the records of an index, possibly followed by others."""
        return _parsed(self._page(before(index))[0])

    def pages(self) -> Iterator[list[RecordKey]]:
        """Yield every record of the run, page by page."""
        for names in self.list_pages(_FOLDER, timeout_s=_REQUEST_S):
            yield _parsed(names)

    def fetch(self, key: RecordKey) -> InvocationRecord | Lost:
        """Return a record, or a loss if it is invalid; for a refusal, a loss that never began."""
        try:
            data = self.get(record_name(key), most=_RECORD_BYTES, timeout_s=_REQUEST_S)
        except TooLong as exc:
            return Lost(index=key.index, launch=key.launch, cause=f"its record: {exc}")
        if len(data) <= _REFUSAL_BYTES and (reason := read_refusal(data)):
            return Lost(index=key.index, launch=key.launch, cause=reason, not_started=True)
        record = read_record(data, key.index, key.launch)
        mine = (self._run_id, key.delivery)
        if isinstance(record, Lost) or (record.run_id, record.delivery) == mine:
            return record
        return Lost(index=key.index, launch=key.launch, cause="the record belongs to another run")

    def holder(self, index: int, launch: int) -> Mapping[str, Any] | None:
        """Return the claim of a launch; None if it is unclaimed."""
        return get_claim(self, index, launch, timeout_s=_REQUEST_S)

    def take_back(self, index: int, launch: int, now_ns: int) -> Mapping[str, Any]:
        """Claim a launch so that no worker can start it; return the resulting claim."""
        mine = {"run_id": self._run_id, "taken_back_ns": now_ns}
        return claim(self, claim_name(index, launch), mine, timeout_s=_REQUEST_S)

    def _page(self, after: str) -> tuple[list[str], bool]:
        return self.list_page(_FOLDER, after, timeout_s=_REQUEST_S)


def _parsed(names: Iterable[str]) -> list[RecordKey]:
    return [key for name in names if (key := parse_record(name))]


class RequestedRecords:
    """Requested records of a run, shared by all of its waves.

    It stores the digits of one delivery by index, and the rare additional ones separately: a set of
    keys would grow to tens of MB with 100,000 functions.

    Parameters
    ----------
    invocations
        Number of invocations in the run.
    """

    def __init__(self, invocations: int) -> None:
        self._first = array("Q", bytes(8 * invocations))
        self._further: set[tuple[int, int]] = set()
        self.any_ran = False
        """Whether any of them is a measurement and not a refusal."""

    def add(self, key: RecordKey) -> bool:
        """Add a record, and return whether it belongs to the run and is new."""
        index = key.index
        if index >= len(self._first):
            return False
        digits = int(key.delivery[:16], 16)
        if not self._first[index]:
            self._first[index] = digits
            return True
        other = (index, digits)
        room = len(self._further) < _MOST_FURTHER
        if is_new := room and self._first[index] != digits and other not in self._further:
            self._further.add(other)
        return is_new
