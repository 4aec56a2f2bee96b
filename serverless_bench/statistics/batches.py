"""Means of batches: parts of a series that are long enough to be nearly independent. Pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from serverless_bench.rundir.tables import Floats


def batch_means(samples: NDArray[Any], count: int) -> Floats:
    """Return the means of so many batches of equal length, which have all samples."""
    means: Floats = samples.reshape(count, len(samples) // count).mean(axis=1)
    return means


def relative_standard_error(means: Floats) -> float:
    """Return the standard error of the mean of independent batches, over that mean."""
    return float(means.std(ddof=1) / np.sqrt(len(means)) / means.mean())
