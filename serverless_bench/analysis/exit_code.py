"""What a run stands for where a program ends with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from serverless_bench.errors import CORRUPT, INCOMPLETE, WITHHELD, ArchiveError

if TYPE_CHECKING:
    from serverless_bench.analysis.summary import Summary


def exit_code_of(summary: "Summary", contradictions: Sequence[str] = ()) -> int:
    """Return the exit code of a report; 0 if nothing is wrong.

    Parameters
    ----------
    summary
        Of the run.
    contradictions
        How the files of its directory differ from what its driver left.
    """
    if summary.corrupt_objects or (summary.contention and summary.contention.violated_keys):
        return CORRUPT
    if summary.withheld:
        return WITHHELD
    if contradictions:
        return ArchiveError.exit_code
    return 0 if summary.ok == summary.requested else INCOMPLETE
