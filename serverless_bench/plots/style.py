"""The colours of the phases."""

from typing import Final

from serverless_bench.archive import Run

_COLORS: Final = {"write": "tab:green", "read": "tab:blue"}


def color_of(run: Run) -> str:
    """Return the colour of a run's phase."""
    return _COLORS.get(run.job.workload, "tab:gray")
