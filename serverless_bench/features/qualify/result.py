"""The findings of ``sbench qualify``: a page, a document and an exit code."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from serverless_bench.base.units import format_count
from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.cost.prices import format_money
from serverless_bench.features.qualify.guarantees import Guarantee
from serverless_bench.report.text_table import table

_RULE_OF_THREE: Final = 3.0
"""Upper limit at 95 % of the expected number of events of which none was seen."""
_MOST_CHARACTERS: Final = 1000
"""Longest line of a proof: a store chooses entity tags."""
_SHORT: Final = 20
"""Bytes of a response that are shown."""
_SHOWN: Final = 12
"""Requests of a proof on the page, the last ones; the document has all."""


class GuaranteeVerdict(StrEnum):
    """What is known of a guarantee."""

    SAFE = "safe"
    """It held in every try."""
    UNSAFE = "unsafe"
    """It was broken, and requests prove it."""
    UNSUPPORTED = "not supported"
    """The store rejects the requests that it is about."""
    UNKNOWN = "unknown"
    """No try had a result."""


@dataclass(slots=True, kw_only=True)
class CheckedGuarantee:
    """The verdict on a guarantee, so far or in the end."""

    guarantee: Guarantee
    verdict: GuaranteeVerdict = GuaranteeVerdict.UNKNOWN
    tries: int = 0
    """How often it was tried; a trial may try it more than once."""
    reason: str = "the time or the cost was up before the first try"
    """What was broken, or why nothing is known; empty if the guarantee was kept."""
    proof: Sequence[Mapping[str, Any]] = ()
    """The requests of the trial that broke it, as they were sent."""
    trials: int = 0
    voids: int = 0
    """Trials with and without a result."""
    is_final: bool = False

    @property
    def at_most(self) -> float | None:
        """Share of tries that may break it (95 %), if none of those made did; None if unknown."""
        return (
            min(_RULE_OF_THREE / self.tries, 1.0) if self.verdict is GuaranteeVerdict.SAFE else None
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the JSON document."""
        return {
            "guarantee": self.guarantee.name,
            "sentence": self.guarantee.sentence,
            "users": self.guarantee.users.split(", "),
            "verdict": self.verdict,
            "tries": self.tries,
            "at_most": self.at_most,
            "reason": self.reason,
            "proof": self.proof,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """All findings about a store.

    Parameters
    ----------
    endpoints
        URLs of the store.
    bucket, functions
        Name of the bucket, and number of functions.
    findings
        A finding for each guarantee.
    requests
        Number of requests by method.
    dollars
        Price of the requests on Amazon S3.
    left
        Number of objects that could not be deleted.
    """

    endpoints: Sequence[str]
    bucket: str
    functions: int
    findings: Sequence[CheckedGuarantee]
    requests: Mapping[str, int]
    dollars: float
    left: int

    @property
    def exit_code(self) -> ExitCode:
        """``UNFIT`` if a guarantee is broken, ``UNDECIDED`` if not all are known to be kept."""
        verdicts = {finding.verdict for finding in self.findings}
        if GuaranteeVerdict.UNSAFE in verdicts:
            return ExitCode.UNFIT
        if self.left:
            return ExitCode.INCOMPLETE
        return ExitCode.OK if verdicts == {GuaranteeVerdict.SAFE} else ExitCode.UNDECIDED

    @property
    def headline(self) -> str:
        """How many guarantees have each verdict."""
        counts = Counter(finding.verdict for finding in self.findings)
        return ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in GuaranteeVerdict if counts[verdict]
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document; README.md lists its fields."""
        return {
            "endpoints": list(self.endpoints),
            "bucket": self.bucket,
            "functions": self.functions,
            "guarantees": [finding.to_json() for finding in self.findings],
            "requests": dict(self.requests),
            "dollars": self.dollars,
            "left": self.left,
        }

    def lines(self, style: str) -> Iterator[str]:
        """Yield the page as text or Markdown."""
        rows = [
            (
                one.guarantee.name,
                str(one.verdict),
                f"{one.tries:,}",
                "" if one.at_most is None else f"{one.at_most:.2%}",
                one.guarantee.sentence,
            )
            for one in self.findings
        ]
        header = ("guarantee", "verdict", "tries", "at most", "sentence")
        yield from table(header, rows, style, align="llrrl")
        endpoints = format_count(len(self.endpoints), "endpoint")
        yield f"{self.headline}; {self.functions} functions, {endpoints}"
        count = format_count(sum(self.requests.values()), "request")
        yield f"{count}, {format_money(self.dollars)} on Amazon S3"
        yield "at most: share of tries that may break it, at 95 %, although none did (3 / tries)"
        for one in self.findings:
            if one.reason:
                yield ""
                name, users = one.guarantee.name, one.guarantee.users
                yield f"{name} is {one.verdict}: {one.reason} ({users})"
                # Functions that read the same fill no lines.
                lines = {line.partition(": ")[2]: line for line in map(_line, one.proof)}
                yield from [*lines.values()][-_SHOWN:]
        if self.left:
            yield f"{format_count(self.left, 'object')} could not be deleted"


def _line(request: Mapping[str, Any]) -> str:
    """Return a request of a proof in a line."""
    sent = [f"{name}: {value}" for name, value in request["headers"].items()]
    if size := request["body"]["bytes"]:
        sent.append(format_count(size, "byte"))
    more = f" [{', '.join(sent)}]" if sent else ""
    answer = f"{request['status'] or 'no answer'} {request['code']}".strip()
    text = request["answer"]["begins"]
    answer += (
        f" {text!r}" if 0 < request["answer"]["bytes"] <= _SHORT and not request["code"] else ""
    )
    closed = f" (connection closed {request['closed']})" if request["closed"] else ""
    line = (
        f"  {request['start_s']:9.6f} s  function {request['function']}:"
        f" {request['method']} {request['path']}{more} -> {answer}{closed}"
    )
    return line[:_MOST_CHARACTERS]
