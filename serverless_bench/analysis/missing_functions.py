"""What functions that are missing could change at most. Pure."""

import math
from dataclasses import dataclass

import numpy as np

from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import Floats, Mask, is_text, sum_by


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFunctions:
    """What the run would show at least and at most if the missing functions were known.

    analysis/figures.toml defines each figure.
    """

    count: int
    whole_bytes_per_s: tuple[float, float]
    per_function_p50_bytes_per_s: tuple[float, float] | None


def missing_functions(
    run: Run, good: Mask, rates: Floats, *, whole: float | None, span_s: float | None
) -> MissingFunctions | None:
    """Return what the functions that are not ok could change at most.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    rates
        Of the functions that are ok.
    whole, span_s
        Of the run.

    Returns
    -------
    MissingFunctions or None
        None unless functions are missing and others moved bytes.
    """
    is_ok = is_text(run.functions["status"], "ok")
    missing = run.job.invocations - int(is_ok.sum())
    if not missing or not len(rates) or whole is None or not span_s:
        return None
    operations = run.operations
    moved = sum_by(operations["function"][good], operations["bytes"][good], len(is_ok))
    most = int(moved[is_ok].sum()) + missing * int(moved.max())
    return MissingFunctions(
        count=missing,
        whole_bytes_per_s=(whole, max(whole, most / span_s)),
        per_function_p50_bytes_per_s=_middle(rates, missing),
    )


def _middle(rates: Floats, missing: int) -> tuple[float, float] | None:
    """Return the median if all that are missing were slower, and faster, than ``rates``."""
    ordered = np.sort(rates)
    half = (len(rates) + missing - 1) / 2
    slow, fast = math.floor(half) - missing, math.ceil(half)
    if slow < 0 or fast >= len(ordered):
        return None
    return float(ordered[slow]), float(ordered[fast])
