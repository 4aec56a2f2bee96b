"""Read what bounds a run from elasticities. Pure functions.

A tree leads from the inside of a function to the store. Each step needs the interval of an
elasticity to lie on one side of ``SPLIT``, otherwise the cause stays undecided. Causes that the
available changes cannot separate are returned together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from serverless_bench.statistics.elasticity import SPLIT, Elasticity


class BoundBy(StrEnum):
    """A cause that a run can have for its throughput."""

    PROCESSOR = "processor"
    MACHINE = "machine's processors"
    LOCK = "interpreter lock"
    OWN_CODE = "own code"
    LATENCY = "latency"
    CONNECTION = "rate of a connection"
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


class _UndecidedError(Exception):
    """The interval of a change contains ``SPLIT``."""


def decide(
    rows: Mapping[str, Elasticity], *, own_share: float, failed: Iterable[str] = ()
) -> Cause:
    """Return the cause.

    Parameters
    ----------
    rows
        Elasticities by change.
    own_share
        Share of the threads' time outside of requests.
    failed
        Changes that the functions did not carry out, according to their records.
    """
    not_made = tuple(failed)
    try:
        names = _names({name: row for name, row in rows.items() if name not in not_made}, own_share)
    except _UndecidedError as exc:
        undecided = exc.args
        if set(undecided) & set(not_made):
            return Cause(without_effect=not_made)
        return Cause(
            undecided=undecided,
            blocks=max((rows[name].blocks_needed for name in undecided if name in rows), default=0),
            shares=_shares(rows, undecided),
        )
    if not_made and _RESIDUAL & set(names):
        return Cause(without_effect=not_made)
    return Cause(names=names)


def _shares(rows: Mapping[str, Elasticity], undecided: Iterable[str]) -> dict[str, float]:
    """Return the elasticities above 0 if further blocks would not decide an undecided change."""
    if not any(name in rows and rows[name].is_partial for name in undecided):
        return {}
    limits = (name for name in ("processor", "lock", "thread", "pause", "others") if name in rows)
    return {name: rows[name].value for name in limits if rows[name].interval[0] > 0}


def _names(rows: Mapping[str, Elasticity], own_share: float) -> tuple[BoundBy, ...]:
    """Walk the tree; raise ``_UndecidedError`` with the change that would be the next step."""
    steps = ("processor", "lock", "thread" if "thread" in rows else "pause")
    # Elasticities of speeds add up to 1: the first above ``SPLIT`` is the cause.
    first = next((name for name in steps if name in rows and rows[name].bounds), None)
    if first is None:
        for name in steps:
            _step(rows, name)
        return _limits(rows)
    if first == "processor":
        if "others" not in rows or rows["others"].bounds is None:
            return BoundBy.PROCESSOR, BoundBy.MACHINE
        return _either(rows, "others", BoundBy.MACHINE, BoundBy.PROCESSOR)
    if first == "lock":
        return (BoundBy.LOCK,)
    if own_share > SPLIT:
        return (BoundBy.OWN_CODE,)
    return _either(rows, "bytes", BoundBy.LATENCY, BoundBy.CONNECTION)


def _limits(rows: Mapping[str, Elasticity]) -> tuple[BoundBy, ...]:
    """Return the cause of a run that more threads do not make faster."""
    if not _step(rows, "others"):
        return _either(rows, "bytes", BoundBy.FUNCTION_REQUESTS, BoundBy.FUNCTION_NETWORK)
    for change, cause in (("prefixes", BoundBy.PREFIX), ("endpoints", BoundBy.ENDPOINT)):
        if change in rows and not _step(rows, change):
            return (cause,)
    return _either(rows, "bytes", BoundBy.QUEUE, BoundBy.PIPE)


def _step(rows: Mapping[str, Elasticity], change: str) -> bool:
    bounds = rows[change].bounds if change in rows else None
    if bounds is None:
        raise _UndecidedError(change)
    return bounds


def _either(
    rows: Mapping[str, Elasticity], change: str, yes: BoundBy, no: BoundBy
) -> tuple[BoundBy, ...]:
    """Return the cause on one side of a step; both if the change is not available."""
    if change not in rows:
        return yes, no
    return (yes,) if _step(rows, change) else (no,)
