"""Causes with their truths, and the cells in which they are tried: data, fixed before any run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Final

from tests.combinations.covering import Case, Covering
from tests.verdicts.judging import Truth
from tests.verdicts.words import (
    ALL,
    CONNECTION,
    CPU,
    FUNCTION,
    IDLE,
    LATENCY,
    LAUNCH,
    LOCK,
    OTHER_FUNCTIONS,
    OWN_CODE,
    QUEUE,
    SCHEDULE,
    THROTTLED,
)

EXECUTORS: Final = ("local", "inline", "workers", "dask", "lambda")
_SIDE_BY_SIDE: Final = ("local", "workers", "dask", "lambda")
SIZES: Final = ("64KiB", "1MiB", "4MiB")
_SMALL: Final = ("64KiB",)
_LARGE: Final = ("1MiB", "4MiB")
"""Sizes of reads over a shared pipe: a small response spends most of its time behind those of other
functions, and records do not distinguish that from the store's time to answer."""
_COVERED: Final = ("write", "read")
HEDGED: Final = "hedged read"
OTHERS: Final = ("parquet", "replay", HEDGED)
SHUFFLE: Final = "shuffle"
_WITH_ANY_CLIENT: Final = ("parquet", "replay")
_COVERED_IN_CI: Final = 20
_IN_CI: Final = (("late answers", "parquet"), ("schedule", "replay"), ("slow mapper", SHUFFLE))
IN_CI: Final = _COVERED_IN_CI + len(_IN_CI)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A rig, and the truth about functions that run on it."""

    rig: str
    """Description of its setup."""
    truths: Sequence[Truth]
    """Truths for groups of functions of equal number."""
    executors: Sequence[str] = _SIDE_BY_SIDE
    sizes: Sequence[str] = SIZES
    commands: Sequence[str] = _COVERED
    """Commands in cells of the covering array."""
    others: Sequence[str] = OTHERS
    """Other commands, in one cell each."""
    other_sizes: Sequence[str] = SIZES
    """Sizes of ``sizes`` for other commands."""
    namespace: bool = False


def _truth(*true: str, specific: Sequence[str] = ()) -> Truth:
    return Truth(frozenset(true), frozenset(specific or true))


# One run with a connection per function cannot distinguish these if rates are equal.
_LIMITS: Final = (FUNCTION, CONNECTION, ALL)
_WAITS: Final = (LATENCY, QUEUE)
_FUNCTION: Final = _truth(FUNCTION, specific=_LIMITS)
_LATENCY: Final = _truth(LATENCY, specific=_WAITS)
_PIPE: Final = _truth(ALL, specific=_LIMITS)

CAUSES: Final[Mapping[str, Cause]] = {
    "pipe of all": Cause(
        rig="80 Mbit/s before the store, kernel's token bucket",
        truths=(_PIPE,),
        other_sizes=_LARGE,
        namespace=True,
    ),
    "pipe of two commands": Cause(
        rig="the same, and another command that writes",
        truths=(_PIPE,),
        other_sizes=_LARGE,
        namespace=True,
    ),
    "limit per function": Cause(
        rig="a link of 20 Mbit/s for each function, kernel's token bucket",
        truths=(_FUNCTION,),
        namespace=True,
    ),
    "mixed halves": Cause(
        rig="half of the functions over such links, half answered late",
        truths=(_FUNCTION, _LATENCY),
        sizes=("64KiB", "1MiB"),
        namespace=True,
    ),
    "limit per connection": Cause(
        rig="2.5 MB/s a connection, paced by the kernel",
        truths=(_truth(CONNECTION, specific=_LIMITS),),
        executors=EXECUTORS,
    ),
    "late answers": Cause(
        rig="60 ms or more before each answer", truths=(_LATENCY,), executors=EXECUTORS
    ),
    "queue": Cause(
        rig="requests served one at a time, 30 ms or more each",
        truths=(_truth(QUEUE, specific=_WAITS),),
    ),
    "refusals": Cause(
        rig="four in ten requests answered 503",
        truths=(_truth(THROTTLED),),
        executors=EXECUTORS,
        sizes=_SMALL,
    ),
    "schedule": Cause(
        rig="open loop at a fraction of what the store takes",
        truths=(_truth(SCHEDULE),),
        executors=EXECUTORS,
        sizes=_SMALL,
    ),
    "own function sleeps": Cause(
        rig="own function: 0.2 s of sleep beside each object",
        truths=(_truth(OWN_CODE),),
        executors=EXECUTORS,
        sizes=_SMALL,
        commands=("write",),
        others=(),
    ),
    "own function computes": Cause(
        rig="own function: 0.2 s of computing beside each object",
        truths=(_truth(OWN_CODE, CPU),),
        executors=EXECUTORS,
        sizes=_SMALL,
        commands=("write",),
        others=(),
    ),
    "processes share a CPU": Cause(
        rig="one CPU for all (taskset), boto3, 4 KiB",
        truths=(_truth(CPU),),
        executors=("local", "inline"),
        sizes=_SMALL,
        others=_WITH_ANY_CLIENT,
    ),
    "GIL": Cause(
        rig="one function of 8 threads, boto3, 4 KiB",
        truths=(_truth(LOCK, CPU, specific=[LOCK]),),
        executors=("local", "inline", "dask", "lambda"),
        sizes=_SMALL,
        others=_WITH_ANY_CLIENT,
    ),
    "slow launch": Cause(
        rig="one small object a function, its launch held for 2 s",
        truths=(_truth(LAUNCH),),
        executors=("workers", "lambda"),
        sizes=_SMALL,
        commands=("write",),
        others=_WITH_ANY_CLIENT,
    ),
    "slow collection": Cause(
        rig="three rounds of short functions, each record held for 2 s",
        truths=(_truth(IDLE),),
        executors=("workers", "dask", "lambda"),
        sizes=_SMALL,
        commands=("write",),
        others=_WITH_ANY_CLIENT,
    ),
    "slow mapper": Cause(
        rig="a shuffle of one mapper, 0.5 s before each answer",
        truths=(_LATENCY, *3 * [_truth(OTHER_FUNCTIONS)]),
        executors=("local",),
        sizes=_SMALL,
        commands=(),
        others=(SHUFFLE,),
    ),
}
FACTORS: Final[Mapping[str, Sequence[str]]] = {
    "cause": tuple(CAUSES),
    "executor": EXECUTORS,
    "size": SIZES,
    "command": (*_COVERED, *OTHERS, SHUFFLE),
}


def cells() -> list[Case]:
    """Return cells that contain every possible pair of values, those of CI first.

    Columns, replays and hedged reads have one cell for each cause: other factors are already
    tried with reads.
    """
    refused = [
        {"cause": name, factor: value}
        for name, cause in CAUSES.items()
        for factor, allowed in (
            ("executor", cause.executors),
            ("size", cause.sizes),
            ("command", cause.commands),
        )
        for value in FACTORS[factor]
        if value not in allowed
    ]
    left = Covering({**FACTORS, "command": _COVERED}, refused).cover()
    chosen: list[Case] = []
    while len(chosen) < _COVERED_IN_CI:
        # Values are more than pairs: CI tries every cause, then as many pairs as it can.
        values = {item for case in chosen for item in case.items()}
        pairs = {pair for case in chosen for pair in _pairs(case)}
        best = max(
            left,
            key=lambda case: (
                ("cause", case["cause"]) not in values,
                len(set(case.items()) - values),
                len(_pairs(case) - pairs),
            ),
        )
        left.remove(best)
        chosen.append(best)
    others = sorted(_other_cells(), key=lambda case: (case["cause"], case["command"]) not in _IN_CI)
    chosen += others[: len(_IN_CI)]
    left.sort(key=lambda case: list(case.values()))
    return [*chosen, *left, *others[len(_IN_CI) :]]


def _other_cells() -> Iterator[Case]:
    """Yield a cell for each cause and other command, with executors and sizes in turns."""
    turns = count()
    for name, cause in CAUSES.items():
        for command in cause.others:
            turn = next(turns)
            executor = cause.executors[turn % len(cause.executors)]
            sizes = [size for size in cause.sizes if size in cause.other_sizes]
            size = sizes[turn % len(sizes)]
            yield {"cause": name, "executor": executor, "size": size, "command": command}


def possible_here(of: Sequence[Case], *, with_namespace: bool) -> list[Case]:
    """Return the cells that need no network namespace, or all of them."""
    return [case for case in of if with_namespace or not CAUSES[case["cause"]].namespace]


def _pairs(case: Mapping[str, str]) -> set[tuple[tuple[str, str], ...]]:
    return set(combinations(sorted(case.items()), 2))


def name_of(case: Mapping[str, str]) -> str:
    """Return a cell's name in the table."""
    return ", ".join(case[factor] for factor in FACTORS)
