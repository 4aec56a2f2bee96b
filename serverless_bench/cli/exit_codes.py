"""What ``sbench`` ends with; docs/exit-codes.md says the same for users."""

from enum import IntEnum

from serverless_bench import errors


class ExitCode(IntEnum):
    """One number per way to end. Errors have theirs in ``errors.py``."""

    OK = 0
    INCOMPLETE = errors.INCOMPLETE
    """Functions failed or were lost; everything else is in the report."""
    CORRUPT = errors.CORRUPT
    """Data came back that is not what was written, or a write was lost."""
    SLOWER = 9
    """A comparison found a side slower than its baseline."""
    UNDECIDED = 10
    """A comparison found neither a difference nor that there is none."""
    WITHHELD = errors.WITHHELD
    """The records contradict themselves, or what is possible: no headline."""
    UNFIT = 13
    """``doctor`` found what would make a run fail."""
    NEVER_HELD = 14
    """``limit``: the objective does not hold even at the lowest level."""
    NO_LIMIT = 15
    """``limit``: the objective holds at the highest level that was allowed."""
