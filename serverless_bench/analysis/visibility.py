"""What the client of a run let us see of its requests, and which figures it left us without. Pure.

A figure of something that a client does not show is null, and not a guess: the report names it
(docs/decisions/0021-what-clients-show.md).
"""

from collections.abc import Mapping
from typing import Final

from serverless_bench.rundir.record import Shown
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import READS, Mask, is_one_of, is_text

NEEDED: Final[Mapping[str, Shown]] = {
    "ttfb_s": Shown.FIRST_BYTE,
    "ack_s": Shown.LAST_BYTE_SENT,
    "new_connections": Shown.CONNECTION,
}
"""By field of the report, what it is made of."""
SEEN: Final[Mapping[str, str]] = {
    "ttfb_s": "when the first byte came",
    "ack_s": "when the last byte was sent",
    "new_connections": "its connections",
}
"""By field of the report, what it is made of, in words."""


def shown(run: Run) -> frozenset[Shown]:
    """Return what the run's client showed.

    A run that does not say was imported, and its instants are the log's.
    """
    client = run.provenance.get("client", {})
    if "shows" in client:
        return frozenset(sign for sign in Shown if sign.value in client["shows"])
    return frozenset(Shown if "source" in run.provenance else ())


def not_shown(run: Run, good: Mask) -> tuple[str, ...]:
    """Return the fields that are null because the client does not show what they are made of.

    Parameters
    ----------
    run
        A saved run.
    good
        Which operations succeeded and count, shape ``(operations,)``.
    """
    kinds, seen = run.operations["kind"], shown(run)
    concerned = {
        "ttfb_s": is_one_of(kinds, READS),
        "ack_s": is_text(kinds, "put"),
        "new_connections": good,
    }
    return tuple(
        name
        for name, needed in NEEDED.items()
        if needed not in seen and bool((concerned[name] & good).any())
    )
