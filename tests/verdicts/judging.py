"""Compare answers with the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from scipy.optimize import linear_sum_assignment

from tests.verdicts.words import Answer

CONTRADICTING_SHARE: Final = 0.25
"""A verdict contradicts the truth if it does so for more than this share of the functions: a late
function on a busy machine does not make a verdict wrong.
"""


class Result(StrEnum):
    """Comparison of an answer with the truth, best first."""

    SPECIFIC = "specific"
    TRUE = "true"
    NOT_KNOWN = "not known"
    CONTRADICTS = "contradicts"


_COSTS: Final = dict(zip(Result, (0, 1, 2, 100), strict=True))


@dataclass(frozen=True)
class Truth:
    """Causes that bound a function, and the narrowest answer that its records allow.

    An answer that shares no cause with ``true`` contradicts. An answer within ``specific`` is the
    most specific; a wider one is true. If ``true`` is empty the runs cannot decide, and saying so
    is the most specific answer.
    """

    true: Answer
    specific: Answer

    def judge(self, answer: Answer) -> Result:
        """Compare the answer for one function."""
        if not answer:
            return Result.NOT_KNOWN if self.true else Result.SPECIFIC
        if not answer & self.true:
            return Result.CONTRADICTS
        return Result.SPECIFIC if answer <= self.specific else Result.TRUE


def judge(groups: Sequence[Truth], text: Sequence[Answer]) -> Result:
    """Compare a report with the truth.

    Parameters
    ----------
    groups
        The functions in groups of equal number, each with a truth of its own.
    said
        The answer for every function. A report counts functions without naming them, so answers
        are assigned to groups in the way that is best for the report.
    """
    if not text:
        return Result.NOT_KNOWN
    truths = [groups[index % len(groups)] for index in range(len(text))]
    table = [[truth.judge(answer) for answer in text] for truth in truths]
    costs = np.array([[_COSTS[result] for result in row] for row in table])
    results = [
        table[row][column] for row, column in zip(*linear_sum_assignment(costs), strict=True)
    ]
    if results.count(Result.CONTRADICTS) > CONTRADICTING_SHARE * len(results):
        return Result.CONTRADICTS
    if 2 * results.count(Result.SPECIFIC) > len(results):
        return Result.SPECIFIC
    known = results.count(Result.SPECIFIC) + results.count(Result.TRUE)
    return Result.TRUE if 2 * known > len(results) else Result.NOT_KNOWN
