"""The control prefix of a run as its driver sees it; every method waits for the network.

Beside it, which records the driver has requested.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from serverless_bench.clock import Clock, http_date_s
from serverless_bench.errors import BadResponse, OperationError, StoreError
from serverless_bench.executors.base import read_record
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import InvocationRecord, Lost
from serverless_bench.units import KIB, MIB, NS_PER_S
from serverless_bench.worker.claims import (
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
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import MOST_PAGES, ObjectIO

_FOLDER: Final = "records/"
_RECORD_BYTES: Final = 512 * MIB
"""A million small objects, with a request each, make 400 MB."""
_REFUSAL_BYTES: Final = 4 * KIB
_REQUEST_S: Final = 60.0
"""How long one request may take, with its attempts."""
_MOST_FURTHER: Final = 100_000
"""Deliveries besides the first of each index: no queue delivers so often, but anybody may write
records who may write there."""
SKEW_S: Final = 2.0
"""What a clock may be off without a word about it."""


class ControlView(ObjectIO):
    """Claims and records of one run; threads may share it.

    Parameters
    ----------
    control
        The job's control target.
    run_id
        Of the run.
    """

    def __init__(self, control: Target, run_id: str) -> None:
        self._where = f"{control.bucket}/{control.prefix}"
        self._run_id = run_id
        super().__init__(for_run(control, run_id))

    def reach(self, clock: Clock) -> int:
        """Look whether the prefix can be listed, and return how far our clock is ahead, in ns.

        0 if that is less than what the store's whole seconds can tell.

        Raises
        ------
        StoreError
            If it cannot be listed.
        """
        try:
            self._page("")
        except OperationError as exc:
            raise StoreError(
                f"the control prefix {self._where} cannot be listed: {exc}",
                hint="check `control_prefix`, `stack`, and what these credentials may do",
            ) from exc
        date_s = http_date_s(self.date)
        if date_s is None:
            return 0
        ahead_s = clock.now_ns() / NS_PER_S - date_s - 0.5
        return round(ahead_s * NS_PER_S) if abs(ahead_s) > SKEW_S else 0

    def records(self, targets: Sequence[int]) -> list[RecordKey]:
        """Return records from the first target on; what lies between targets is skipped.

        Parameters
        ----------
        targets
            Indexes whose records are wanted, in order.
        """
        found: list[RecordKey] = []
        after = before(targets[0])
        for _ in range(MOST_PAGES):
            names, more = self._page(after)
            keys = _parsed(names)
            found += keys
            if not more:
                return found
            behind = names[-1]
            if keys:
                last = keys[-1].index
                position = bisect_left(targets, last)
                if position == len(targets):
                    return found
                if targets[position] > last:
                    behind = before(targets[position])
            if behind <= after:
                raise BadResponse("the store lists the same keys again and again", status=200)
            after = behind
        raise BadResponse("the list of records does not end", status=200)

    def records_of(self, index: int) -> list[RecordKey]:
        """Return the records of one index, and maybe of further ones."""
        return _parsed(self._page(before(index))[0])

    def pages(self) -> Iterator[list[RecordKey]]:
        """Yield every record of the run, a page at a time."""
        for names in self.list_pages(_FOLDER, timeout_s=_REQUEST_S):
            yield _parsed(names)

    def fetch(self, key: RecordKey) -> InvocationRecord | Lost:
        """Return a record, or a loss if it is none: one that never began if it is a refusal."""
        try:
            data = self.get(record_name(key), most=_RECORD_BYTES, timeout_s=_REQUEST_S)
        except TooLong as exc:
            return Lost(index=key.index, launch=key.launch, cause=f"its record: {exc}")
        if len(data) <= _REFUSAL_BYTES and (reason := read_refusal(data)):
            return Lost(index=key.index, launch=key.launch, cause=reason, never_began=True)
        found = read_record(data, key.index, key.launch)
        mine = (self._run_id, key.delivery)
        if isinstance(found, Lost) or (found.run_id, found.delivery) == mine:
            return found
        return Lost(index=key.index, launch=key.launch, cause="the record is of another run")

    def holder(self, index: int, launch: int) -> Mapping[str, Any] | None:
        """Return the claim of a launch; None if nobody has made it."""
        return get_claim(self, index, launch, timeout_s=_REQUEST_S)

    def take_back(self, index: int, launch: int, now_ns: int) -> Mapping[str, Any]:
        """Claim a launch so that no worker can begin it; return whose it is then."""
        mine = {"run_id": self._run_id, "taken_back_ns": now_ns}
        return claim(self, claim_name(index, launch), mine, timeout_s=_REQUEST_S)

    def _page(self, after: str) -> tuple[list[str], bool]:
        return self.list_page(_FOLDER, after, timeout_s=_REQUEST_S)


def _parsed(names: Iterable[str]) -> list[RecordKey]:
    return [key for name in names if (key := parse_record(name))]


class RequestedRecords:
    """The records of a run that have been requested; one for all of a run's waves.

    By index it keeps the digits of one delivery, and the few further ones apart: a set of
    keys would grow to tens of MB with 100,000 functions.

    Parameters
    ----------
    invocations
        Of the run.
    """

    def __init__(self, invocations: int) -> None:
        self._first = array("Q", bytes(8 * invocations))
        self._further: set[tuple[int, int]] = set()
        self.any_ran = False
        """Whether one of them is what a function measured, and no refusal."""

    def add(self, key: RecordKey) -> bool:
        """Note a record, and return whether it is one of the run that was not noted yet."""
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
