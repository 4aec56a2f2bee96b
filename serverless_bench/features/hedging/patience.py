"""The time after which a read is requested again: fixed, or a percentile of earlier times."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from serverless_bench.base.errors import Hedged
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.hedging.options import percentile_of
from serverless_bench.worker.meter import Meter

HEDGE_WINDOW: Final = 1000
"""Number of latest times that determine a percentile."""
LEAST_TIMES: Final = 20
"""Fewest times: before, no second request is sent. Higher percentiles need more."""
_ROUNDING: Final = 1e-9
_EVERY: Final = 10
"""Times after which a percentile is computed anew."""


class Hedging:
    """The time after which a kind of read is requested again; threads may share it.

    Of a first request that was given up for the second it is known only that it would have taken
    longer. Left out, it would lower a percentile, which would cut off ever more; the product-limit
    estimate takes it for what it is (Kaplan and Meier, JASA 1958).

    Parameters
    ----------
    hedge
        As in ``HedgingOptions``.
    """

    def __init__(self, hedge: float | str) -> None:
        self._times: deque[tuple[int, bool]] = deque(maxlen=HEDGE_WINDOW)
        self._learned = self._least = 0
        self.after_ns: int | None = None
        """Time without a response after which to hedge; None as long as it is unknown."""
        if isinstance(hedge, str):
            self._percent = percentile_of(hedge)
            self._least = max(LEAST_TIMES, round(100 / (100 - self._percent)))
        else:
            self.after_ns = round(hedge * NS_PER_S)

    def learn(self, meter: Meter) -> None:
        """Take the time of a first request into account, unless it failed."""
        if not self._least or not isinstance(meter.outcome, Hedged | None):
            return
        end_ns = meter.answered_ns or meter.end_ns
        # Without an instant of sending, the response came with it.
        took_ns = end_ns - (meter.last_byte_sent_ns or end_ns)
        self._times.append((took_ns, meter.outcome is not None))
        self._learned += 1
        if self._learned >= self._least and self._learned % _EVERY == 0:
            self.after_ns = _percentile(sorted(self._times), self._percent)


def _percentile(times: Sequence[tuple[int, bool]], percent: float) -> int:
    """Return a percentile of sorted times, some of which are only lower bounds.

    Without such bounds it is the value with the nearest rank. It is the largest time if too many
    are bounds.
    """
    longer = 1.0
    for rank, (took_ns, is_bound) in enumerate(times):
        longer *= 1.0 if is_bound else 1 - 1 / (len(times) - rank)
        if longer <= 1 - percent / 100 + _ROUNDING:
            return took_ns
    return times[-1][0]
