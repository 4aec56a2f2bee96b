"""Read what bounds a run from elasticities. Pure functions.

A tree leads from the inside of a function to the store. Each step needs the interval of an
elasticity to lie on one side of ``SPLIT``, otherwise the cause stays undecided. Causes that the
available changes cannot separate are returned together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import hypot
from typing import Final

from serverless_bench.features.why.elasticity import SPLIT, Elasticity


class BoundBy(StrEnum):
    """A cause that a run can have for its throughput."""

    CPU = "client CPU"
    MACHINE = "CPUs of the machine"
    LOCK = "GIL"
    OWN_CODE = "user code"
    OWN_WAIT = "user code that waits"
    LATENCY = "latency"
    CONNECTION = "bandwidth per connection"
    QUEUE = "requests of all functions"
    PIPE = "bytes of all functions"
    PREFIX = "requests of a prefix"
    ENDPOINT = "an endpoint"
    FUNCTION_REQUESTS = "requests of a function"
    FUNCTION_NETWORK = "bytes of a function"


_RESIDUAL = frozenset({BoundBy.FUNCTION_REQUESTS, BoundBy.FUNCTION_NETWORK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What bounds a run, or what is missing to say so."""

    names: tuple[BoundBy, ...] = ()
    """Several if the changes cannot separate them; none if undecided."""
    undecided: tuple[str, ...] = ()
    """Changes that would decide it."""
    blocks: int = 0
    """Approximate number of further blocks of each of them."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Elasticities of the changes, if several resources bound the run together."""
    without_effect: tuple[str, ...] = ()
    """Changes that were not carried out."""


_Tree = BoundBy | tuple[str, "_Tree", "_Tree"]
"""A cause, or a change with the trees that its two answers lead to."""
_OF_A_FUNCTION: Final[_Tree] = ("bytes", BoundBy.FUNCTION_REQUESTS, BoundBy.FUNCTION_NETWORK)
_OF_THE_STORE: Final[_Tree] = ("bytes", BoundBy.QUEUE, BoundBy.PIPE)
_OF_ALL: Final[_Tree] = (
    "prefixes",
    ("endpoints", _OF_THE_STORE, BoundBy.ENDPOINT),
    BoundBy.PREFIX,
)
_WAITS: Final[_Tree] = ("bytes", BoundBy.LATENCY, BoundBy.CONNECTION)
_SHARED: Final = "shared"
"""Whether functions share their CPU: the answer of ``others``, if there is any."""
_OWN: Final = "own"
"""Whether most of the threads' time is outside of requests, if that is known."""
_NOT_NEEDED: Final = frozenset({"bytes", _SHARED, _OWN})
"""Changes without which the causes of both answers are returned together."""


class _UndecidedError(Exception):
    """A change, without whose answer there is no cause."""


def decide(
    rows: Mapping[str, Elasticity], *, own_share: float | None, failed: Iterable[str] = ()
) -> Cause:
    """Return the cause.

    Parameters
    ----------
    rows
        Elasticities by change.
    own_share
        Share of the threads' time outside of requests; None if it is unknown.
    failed
        Changes that the functions did not carry out, according to their records.
    """
    not_made = tuple(failed)
    answers = {name: row.bounds for name, row in rows.items() if name not in not_made}
    speeds = ("cpu", "lock", "thread" if "thread" in answers else "pause")
    # Elasticities of speeds add up to 1: the first above ``SPLIT`` is the cause.
    first = next((place for place, name in enumerate(speeds) if answers.get(name)), 0)
    answers |= dict.fromkeys(speeds[:first], False)
    if answers.get("others") is not None:
        answers[_SHARED] = answers["others"]
    is_open = not first and answers.get("cpu", True) is None and "others" in answers
    if is_open and _overlap(rows["cpu"], rows["others"]):
        answers |= {"cpu": True, _SHARED: True}
    if own_share is not None:
        answers[_OWN] = own_share > SPLIT
    # Own code with time to spare is idle for a reason that need not be the store.
    limits: _Tree = (
        speeds[2],
        (_OWN, BoundBy.OWN_CODE, _WAITS),
        (_OWN, BoundBy.OWN_WAIT, ("others", _OF_ALL, _OF_A_FUNCTION)),
    )
    tree: _Tree = (
        "cpu",
        (_SHARED, BoundBy.MACHINE, BoundBy.CPU),
        ("lock", BoundBy.LOCK, limits),
    )
    try:
        names = _causes(tree, {"prefixes": True, "endpoints": True} | answers)
    except _UndecidedError as exc:
        (change,) = exc.args
        if change in not_made:
            return Cause(without_effect=not_made)
        row = rows.get(change)
        return Cause(
            undecided=(change,),
            blocks=0 if row is None else row.blocks_needed,
            shares=_shares(rows) if row is not None and row.is_partial else {},
        )
    if BoundBy.OWN_WAIT in names:
        names = tuple(name for name in names if name not in _RESIDUAL)
    if not_made and {*_RESIDUAL, BoundBy.OWN_WAIT} & set(names):
        return Cause(without_effect=not_made)
    return Cause(names=names)


def _overlap(*rows: Elasticity) -> bool:
    """Return whether resources are one, as elasticities that add up to more than 1 show.

    Half widths of independent intervals add up in squares.
    """
    half_widths = ((high - low) / 2 for low, high in (row.interval for row in rows))
    return sum(row.value for row in rows) - hypot(*half_widths) > 1


def _causes(tree: _Tree, answers: Mapping[str, bool | None]) -> tuple[BoundBy, ...]:
    """Return the causes that a tree leads to; raise ``_UndecidedError`` where it does not."""
    if isinstance(tree, BoundBy):
        return (tree,)
    change, yes, no = tree
    if change not in answers and change in _NOT_NEEDED:
        return _causes(yes, answers) + _causes(no, answers)
    if answers.get(change) is None:
        raise _UndecidedError(change)
    return _causes(yes if answers[change] else no, answers)


def _shares(rows: Mapping[str, Elasticity]) -> dict[str, float]:
    """Return the elasticities above 0."""
    limits = (name for name in ("cpu", "lock", "thread", "pause", "others") if name in rows)
    return {name: rows[name].value for name in limits if rows[name].interval[0] > 0}
