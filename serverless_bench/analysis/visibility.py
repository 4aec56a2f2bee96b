"""What the client of a run let us see of its requests, and which figures it left us without. Pure.

A figure of something that a client does not show is null, and not a guess: the report names it
(docs/decisions/0021-what-clients-show.md).
"""

from collections.abc import Mapping
from http import HTTPStatus
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
"""By field of the report, what it is made of, in words."""
SENT: Final = frozenset({"append_array", "put", "write_array"})
"""Kinds that move bytes to the store."""


def shown(run: Run) -> frozenset[Shown]:
    """Return what the run's client showed.

    A run that does not say was imported, and its instants are the log's; which bytes of a write
    had arrived when, no log says.
    """
    client = run.provenance.get("client", {})
    if "shows" in client:
        return frozenset(sign for sign in Shown if sign.value in client["shows"])
    return frozenset(Shown) - {Shown.ACKNOWLEDGED} if "source" in run.provenance else frozenset()


def unacknowledged(run: Run) -> Mask:
    """Return which operations are writes that nobody saw arrive byte by byte.

    Of these no more is known than when they were over: there is no peak, and no burst. Shape
    ``(operations,)``.
    """
    return is_one_of(run.operations["kind"], SENT) & (Shown.ACKNOWLEDGED not in shown(run))


def unseen_attempts(run: Run) -> Mask:
    """Return which attempts moved nobody knows how much, if they failed; shape ``(attempts,)``."""
    status, rows = run.attempts["status"], run.operation_rows(run.attempts)
    progress = run.provenance.get("client", {}).get("progress")
    if progress == "none":
        return np.ones(len(rows), dtype=np.bool_)
    unseen = unacknowledged(run)[rows]
    if progress == "body":
        # Bytes that came before a read of the body failed are nowhere; an error has no body.
        is_body = (status >= HTTPStatus.OK) & (status < HTTPStatus.MULTIPLE_CHOICES)
        unseen |= is_body & is_one_of(run.operations["kind"], READS)[rows]
    return np.asarray(unseen, dtype=np.bool_)


def not_shown(run: Run, good: Mask, retried_bytes: int | None) -> tuple[str, ...]:
    """Return the fields that are null because the client does not show what they are made of.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    retried_bytes
        As in the report.
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
