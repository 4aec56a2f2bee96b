"""Checks that can only be judged by time: two of three tries have to agree."""

from collections.abc import Callable
from typing import Final

REPEATED: Final[list[str]] = []
"""What was tried more than twice, for the summary of the test run."""


def two_of_three(check: Callable[[], None]) -> None:
    """Try a check until two tries agree; raise the last error if two fail.

    Each try has to begin anew, with a run or a rig of its own.
    """
    passed, errors = 0, list[AssertionError]()
    while passed < 2:
        try:
            check()
        except AssertionError as error:
            errors.append(error)
            if len(errors) == 2:
                raise
        else:
            passed += 1
    if errors:
        REPEATED.append(f"two of three tries passed, one failed: {errors[0]}".splitlines()[0])
