"""Exit codes of ``sbench``; docs/exit-codes.md documents them for users."""

from enum import IntEnum

from serverless_bench.base import errors


class ExitCode(IntEnum):
    """Exit codes of commands. Exceptions define their exit codes in ``errors.py``."""

    OK = 0
    INCOMPLETE = errors.INCOMPLETE
    """Functions failed or were lost; the report covers the other functions."""
    CORRUPT = errors.CORRUPT
    """The store returned data that differs from the written data, or lost a write."""
    SLOWER = 9
    """A comparison found a side slower than its baseline."""
    UNDECIDED = 10
    """A comparison could show neither a difference nor equality."""
    WITHHELD = errors.WITHHELD
    """The records are contradictory or physically impossible, so there is no headline."""
    UNFIT = 13
    """``doctor`` found a problem that would make a run fail."""
    NEVER_HELD = 14
    """``limit``: the objective does not hold even at the lowest level."""
    NO_LIMIT = 15
    """``limit``: the objective holds at the highest level that was allowed."""
