"""Determine the details of requests that a run's client exposed, and the missing metrics. Pure.

A metric that needs hidden details is null, not estimated, and the report names it
(docs/decisions/0005-client-instants.md).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import READS, Mask, is_one_of, is_text

_ACKNOWLEDGED: Final = "which bytes of a write were acknowledged"
_FAILED: Final = "what requests moved that failed"
SEEN: Final[Mapping[str, str]] = {
    "peak_1s_bytes_per_s": _ACKNOWLEDGED,
    "peak_5s_bytes_per_s": _ACKNOWLEDGED,
    "ttfb_s": "when the first byte came",
    "ack_s": "when the last byte was acknowledged",
    "offered_bytes": _FAILED,
    "retried_bytes": _FAILED,
    "new_connections": "its connections",
}
"""Descriptions of the underlying data, by field of the report."""
SENT: Final = frozenset({"append_array", "put", "write_array"})
"""Operation kinds that send bytes to the store."""


def shown(run: Run) -> frozenset[Shown]:
    """Return the request details that the run's client exposed.

    A run without this information was imported, and its timestamps come from a log. Logs do not
    record the progress of a write.
    """
    client = run.provenance.get("client", {})
    if "shows" in client:
        return frozenset(sign for sign in Shown if sign.value in client["shows"])
    return frozenset(Shown) - {Shown.ACKNOWLEDGED} if "source" in run.provenance else frozenset()


def unacknowledged(run: Run) -> Mask:
    """Return a mask of writes without acknowledged progress.

    Only the end of these writes is known, so neither peak nor burst can be computed. The shape is
    ``(operations,)``.
    """
    return is_one_of(run.operations["kind"], SENT) & (Shown.ACKNOWLEDGED not in shown(run))


def unseen_attempts(run: Run) -> Mask:
    """Return a mask of attempts with unknown transfer on failure; shape ``(attempts,)``."""
    status, rows = run.attempts["status"], run.operation_rows(run.attempts)
    progress = run.provenance.get("client", {}).get("progress")
    if progress == "none":
        return np.ones(len(rows), dtype=np.bool_)
    unseen = unacknowledged(run)[rows]
    if progress == "body":
        # Bytes that arrived before a body read failed are not recorded; errors have no body.
        is_body = (status >= 200) & (status < 300)
        unseen |= is_body & is_one_of(run.operations["kind"], READS)[rows]
    return np.asarray(unseen, dtype=np.bool_)


def not_shown(run: Run, good: Mask, retried_bytes: int | None) -> tuple[str, ...]:
    """Return the fields that are null because the client does not expose the required details.

    Parameters
    ----------
    run
        A saved run.
    good
        Mask of successful operations that count, shape ``(operations,)``.
    retried_bytes
        Value of this field in the report.
    """
    kinds, seen = run.operations["kind"], shown(run)
    peak, retried = (unacknowledged(run) & good).any(), retried_bytes is None
    is_null = {
        "peak_1s_bytes_per_s": peak,
        "peak_5s_bytes_per_s": peak,
        "ttfb_s": Shown.FIRST_BYTE not in seen and (is_one_of(kinds, READS) & good).any(),
        "ack_s": Shown.ACKNOWLEDGED not in seen and (is_text(kinds, "put") & good).any(),
        "offered_bytes": retried,
        "retried_bytes": retried,
        "new_connections": Shown.CONNECTION not in seen and good.any(),
    }
    return tuple(name for name in SEEN if is_null[name])
