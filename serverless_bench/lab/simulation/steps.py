"""How long the steps of a simulation are: short where what is shared changes."""

from typing import Final

import numpy as np

LEAST_S, MOST_S = 0.001, 0.1
_STEPS: Final = 20
"""In the time that a function takes."""
_MOST_STEPS: Final = 2000
"""The same where it takes long."""
_IN_TURN: Final = 8
"""In the time of a request, where requests compete."""


def usual_step_s(function_s: float) -> float:
    """Return how long a step is as long as the store refuses nothing."""
    most_s = max(MOST_S, function_s / _MOST_STEPS)
    return float(np.clip(function_s / _STEPS, LEAST_S, most_s))


def short_step_s(latency_s: float, usual_s: float) -> float:
    """Return how long a step is while it does.

    Requests come in the order of their instants from step to step, and not within one.
    """
    return float(np.clip(latency_s / _IN_TURN, LEAST_S, usual_s))
