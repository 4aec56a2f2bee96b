"""What ``sbench`` ends with; docs/exit-codes.md says the same for users."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from serverless_bench.errors import ArchiveError

if TYPE_CHECKING:
    from serverless_bench.analysis.summary import Summary


class ExitCode(IntEnum):
    """One number per way to end. Errors have theirs in ``errors.py``."""

    OK = 0
    INCOMPLETE = 6
    """Functions failed or were lost; everything else is in the report."""
    CORRUPT = 7
    """Data came back that is not what was written, or a write was lost."""
    SLOWER = 9
    """A comparison found a side slower than its baseline."""
    UNDECIDED = 10
    """A comparison found neither a difference nor that there is none."""
    WITHHELD = 11
    """The records contradict themselves, or what is possible: no headline."""
    UNFIT = 13
    """``doctor`` found what would make a run fail."""
    NEVER_HELD = 14
    """``limit``: the objective does not hold even at the lowest level."""
    NO_LIMIT = 15
    """``limit``: the objective holds at the highest level that was allowed."""


def exit_code_of(summary: "Summary", contradictions: Sequence[str] = ()) -> int:
    """Return the exit code of a report.

    Parameters
    ----------
    summary
        Of the run.
    contradictions
        How the files of its directory differ from what its driver left.
    """
    if summary.corrupt_objects or (summary.contention and summary.contention.violated_keys):
        return ExitCode.CORRUPT
    if summary.withheld:
        return ExitCode.WITHHELD
    if contradictions:
        return ArchiveError.exit_code
    return ExitCode.OK if summary.ok == summary.requested else ExitCode.INCOMPLETE
