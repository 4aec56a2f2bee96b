"""Which records a driver has requested."""

from array import array
from typing import Final

from serverless_bench.worker.claims import RecordKey

_MOST_FURTHER: Final = 100_000
"""Deliveries besides the first of each index: no queue delivers so often, but anybody may write
records who may write there."""


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
        if self._first[index] == digits or (index, digits) in self._further:
            return False
        if len(self._further) == _MOST_FURTHER:
            return False
        self._further.add((index, digits))
        return True
