"""The answer of ``sbench why``: in JSON, in a sentence, and as a table of changes."""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from math import exp, isinf
from typing import Any, Final

from serverless_bench.base.units import format_count, format_per_s, format_rate, format_seconds
from serverless_bench.features.answers.answer import Drawing, Mark
from serverless_bench.features.compare.verdict import holm
from serverless_bench.features.why.blocks import Blocks, least_block_s
from serverless_bench.features.why.cause import BoundBy, Cause, decide
from serverless_bench.features.why.elasticity import SPLIT, Elasticity
from serverless_bench.features.why.interventions import BASE, CHANGES
from serverless_bench.report.text_table import table

_THREADS: Final = (("more threads", "thread"),)
_LARGER: Final = (("larger objects", "bytes"),)
_FUNCTIONS: Final = (("more functions", ""),)
_REMEDIES: Final[Mapping[BoundBy, tuple[str, str, tuple[tuple[str, str], ...]]]] = {
    BoundBy.CPU: (
        "the CPU of each function",
        "larger functions or a cheaper client",
        _THREADS,
    ),
    BoundBy.MACHINE: (
        "the CPUs of the machine that the functions share",
        "more CPUs or machines",
        (*_THREADS, *_FUNCTIONS),
    ),
    BoundBy.LOCK: (
        "Python's GIL",
        "more functions with fewer threads, or a client that releases the GIL",
        _THREADS,
    ),
    BoundBy.OWN_CODE: (
        "user code, outside of requests",
        "less work between requests, or more threads and functions",
        (("a faster store", ""),),
    ),
    BoundBy.OWN_WAIT: (
        "user code that waits for something other than its requests",
        "whatever it waits for: its own pace, a queue, another service",
        (("a faster store", ""),),
    ),
    BoundBy.LATENCY: (
        "latency, the time that each request waits for its response",
        "more threads, more functions, or larger objects",
        (("more bandwidth", ""), ("a faster CPU", "cpu")),
    ),
    BoundBy.CONNECTION: (
        "bandwidth per connection",
        "more threads or connections",
        _LARGER,
    ),
    BoundBy.QUEUE: (
        "the requests per second of the store, shared by all functions",
        "larger objects, or more partitions of the store",
        (*_THREADS, *_FUNCTIONS),
    ),
    BoundBy.PIPE: (
        "bandwidth of the store or its network, shared by all functions",
        "more bandwidth of the store",
        (*_THREADS, *_FUNCTIONS, *_LARGER),
    ),
    BoundBy.PREFIX: (
        "the requests per second of the store on a prefix",
        "more prefixes or larger objects",
        (*_THREADS, *_FUNCTIONS),
    ),
    BoundBy.ENDPOINT: (
        "the throughput of each endpoint",
        "more endpoints",
        (*_THREADS, *_FUNCTIONS),
    ),
    BoundBy.FUNCTION_REQUESTS: (
        "the requests per second of each function",
        "more functions or larger objects",
        _THREADS,
    ),
    BoundBy.FUNCTION_NETWORK: (
        "bandwidth per function: its network, or the store's limit for a client",
        "more or larger functions",
        (*_THREADS, *_LARGER),
    ),
}
"""What each cause is, what gives more throughput, and what does not, or in part: with the change
whose elasticity tells."""
_NO_HELP: Final = 0.1
"""Elasticity below which a resource has no share in the rate."""
_CONTROL_P: Final = 0.005


class Why(Blocks):
    """What bounds a job, and the effects that show it.

    Parameters
    ----------
    run
        A run of a job with interventions.
    plan
        The interventions.

    Examples
    --------
    >>> try:
    ...     sbench.why(writing, "why", budget_s=1.0).cause
    ... except sbench.SbenchError as error:
    ...     print("need more time than 1 s" in str(error))
    True
    """

    @cached_property
    def cause(self) -> Cause:
        """The cause, or what is undecided."""
        if self.too_short:
            return Cause()
        return decide(self.rows, own_share=self.own_share, failed=self.failed())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench why``."""
        adjusted = holm({change: row.p for change, row in self.rows.items()})
        return {
            "answer": self.sentence,
            "cause": [str(name) for name in self.cause.names],
            "undecided": list(self.cause.undecided),
            "blocks_needed": self.cause.blocks,
            "shares": dict(self.cause.shares),
            "not_carried_out": list(self.cause.without_effect),
            "changes": {
                change: {
                    "blocks": len(row.logs),
                    "effect": row.effect,
                    "expected": exp(row.expected) - 1,
                    "elasticity": row.value,
                    "interval": [None if isinf(end) else end for end in row.interval],
                    "p": row.p,
                    "adjusted_p": adjusted[change],
                }
                for change, row in self.rows.items()
            },
            "own_share": self.own_share,
            "block_s": self.plan.block_s,
            "guard_s": self.guard_s,
            "blocks": [
                {"change": change, "rate": rate}
                for change, rate in zip(
                    self.changes.tolist(), self.rates.sum(axis=1).tolist(), strict=True
                )
            ],
            "directory": str(self.run.path),
        }

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        cause = self.cause
        if self.too_short:
            return (
                f"not known: requests took longer than in the pilot run; use blocks of"
                f" {format_seconds(least_block_s(self.run))} or more, or smaller objects"
            )
        if cause.without_effect:
            names = " and ".join(CHANGES[change] for change in cause.without_effect)
            return f"not known: the changes did not take ({names})"
        if cause.shares:
            parts = (f"{CHANGES[name]} {share:.0%}" for name, share in cause.shares.items())
            return (
                f"several resources bound this job; share of what each changes: {', '.join(parts)}"
            )
        if not cause.names:
            rows = " and ".join(CHANGES[change] for change in cause.undecided)
            more = f"about {format_count(cause.blocks, 'block')} more would tell"
            return f"undecided: {rows}; {more if cause.blocks else 'this job has no such blocks'}"
        whats, gains, _ = zip(*(_REMEDIES[name] for name in cause.names), strict=True)
        if len(cause.names) > 1:
            return f"bottleneck: {', or '.join(whats)}; these changes cannot tell which"
        return f"bottleneck: {whats[0]}. For more throughput: {gains[0]}.{self._others}"

    @property
    def _others(self) -> str:
        """What helps in part, by the elasticity of the change, and what does not."""
        helps: dict[str, list[str]] = {"In part": [], "No help": []}
        for name, change in _REMEDIES[self.cause.names[0]][2]:
            row = self.rows.get(change)
            if not change or (row and row.value < _NO_HELP):
                helps["No help"].append(name)
            elif row:
                helps["In part"].append(f"{name} (a share of {row.value:.0%})")
        return "".join(f" {title}: {', '.join(names)}" for title, names in helps.items() if names)


def drawings(answer: Why) -> tuple[Drawing, ...]:
    """Return the elasticity of each change, with the interval."""
    shown = {True: "bounds the job", False: "does not bound it", None: "undecided"}
    marks = tuple(
        Mark(
            at=CHANGES[change],
            value=row.value,
            low=None if isinf(row.interval[0]) else row.interval[0],
            high=None if isinf(row.interval[1]) else row.interval[1],
            group=shown[row.bounds],
        )
        for change, row in answer.rows.items()
        if change != "nothing"
    )
    says = (
        "Share of each change that the throughput follows: 1 if nothing else bounds the job, 0 if"
        " the resource has no part in it. Bars are intervals that hold together with 95%: beyond"
        " the dashed line the resource bounds the job."
    )
    return (
        Drawing(
            title="Elasticity",
            says=says,
            at="change",
            value="elasticity",
            marks=marks,
            limits=(SPLIT,),
        ),
    )


def lines(answer: Why, style: str, width: int = sys.maxsize) -> Iterator[str]:
    """Yield the lines of a report, as Markdown, or as text with tables of this width."""
    rows = [_cells(change, row) for change, row in answer.rows.items()]
    yield from table(
        ("change", "blocks", "effect", "elasticity", "interval", "p", "bounds"),
        rows,
        style,
        align="lrrrrrl",
        width=width,
    )
    base = answer.rates[answer.changes == BASE].sum(axis=1)
    shown = format_rate if answer.moves_bytes else format_per_s
    yield f"without a change: {shown(float(base.mean()))}"
    if ended := (answer.run.functions["status"] != "ok").sum():
        yield (
            f"{ended} of {answer.run.job.number} functions failed or lost;"
            " blocks after the first are left out"
        )
    if (nothing := answer.rows.get("nothing")) is not None and nothing.p <= _CONTROL_P:
        yield (
            f"even without a change the rate differed (p {nothing.p:.3f}): something else varied;"
            " run it again"
        )
    yield answer.sentence


def _cells(change: str, row: Elasticity) -> tuple[str, ...]:
    low, high = row.interval
    bounds = {True: "yes", False: "no", None: "undecided"}[row.bounds]
    return (
        CHANGES[change],
        str(len(row.logs)),
        f"{row.effect:+.1%}",
        f"{row.value:.2f}",
        "too few blocks" if isinf(low) else f"{low:.2f} to {high:.2f}",
        f"{row.p:.3f}",
        "-" if change == "nothing" else bounds,
    )
