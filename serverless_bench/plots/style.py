"""The colours of the phases."""

from typing import Final

from serverless_bench.archive import Run

_COLORS: Final = {
    "write": "tab:green",
    "read": "tab:blue",
    "mixed": "tab:purple",
    "array": "tab:olive",
    "call": "tab:brown",
}


def color_of(run: Run) -> str:
    """Return the colour of a run's phase."""
    return _COLORS.get(run.job.workload, "tab:orange")


def color_of_phase(name: str) -> str | None:
    """Return the colour of a workload wherever it is drawn; None if the name is of none."""
    return _COLORS.get(name)
