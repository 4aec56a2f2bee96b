"""The page, the document and the exit code of findings."""

from typing import Any

import pytest

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.cost.prices import load_prices
from serverless_bench.features.qualify.guarantees import GUARANTEES
from serverless_bench.features.qualify.measure import cost_of
from serverless_bench.features.qualify.requests import LostResponse, SentRequest
from serverless_bench.features.qualify.result import (
    CheckedGuarantee,
    GuaranteeVerdict,
    Qualification,
)


def result(*verdicts: GuaranteeVerdict, left: int = 0, **more: Any) -> Qualification:
    findings = [
        CheckedGuarantee(guarantee=guarantee, verdict=verdict, tries=10, reason="", **more)
        for guarantee, verdict in zip(GUARANTEES, verdicts, strict=False)
    ]
    return Qualification(
        endpoints=["http://a", "http://b"],
        bucket="b",
        functions=8,
        findings=findings,
        requests={"PUT": 3},
        dollars=0.015,
        left=left,
    )


@pytest.mark.parametrize(
    ("verdicts", "left", "code"),
    [
        ((GuaranteeVerdict.SAFE, GuaranteeVerdict.SAFE), 0, ExitCode.OK),
        ((GuaranteeVerdict.SAFE, GuaranteeVerdict.UNKNOWN), 0, ExitCode.UNDECIDED),
        ((GuaranteeVerdict.SAFE, GuaranteeVerdict.UNSUPPORTED), 0, ExitCode.UNDECIDED),
        ((GuaranteeVerdict.UNKNOWN, GuaranteeVerdict.UNSAFE), 1, ExitCode.UNFIT),
        ((GuaranteeVerdict.SAFE, GuaranteeVerdict.SAFE), 1, ExitCode.INCOMPLETE),
    ],
)
def test_exit_codes(verdicts: tuple[GuaranteeVerdict, ...], left: int, code: ExitCode) -> None:
    assert result(*verdicts, left=left).exit_code is code


def test_the_upper_limit_is_three_by_the_number_of_tries() -> None:
    findings = result(GuaranteeVerdict.SAFE, GuaranteeVerdict.UNSAFE).findings
    assert [one.at_most for one in findings] == [0.3, None]
    findings[0].tries = 2
    assert findings[0].at_most == 1


def test_a_page_shows_what_proves_a_verdict() -> None:
    request = SentRequest(
        function=3,
        method="PUT",
        key="k",
        headers={"if-match": '"e"'},
        body=b"x" * 5000,
        path="/b/k",
        lost=LostResponse.SENT,
        start_ns=1_500_000_000,
    )
    read = SentRequest(function=1, method="GET", key="k", headers={}, body=b"", path="/b/k")
    read.status, read.text, read.start_ns = 200, b"own", 1_500_000_000
    proof = [one.to_json(1_000_000_000) for one in (request, read, read)]
    found = result(GuaranteeVerdict.UNSAFE, proof=proof)
    found.findings[0].reason = "it is broken"
    lines = [*found.lines("text")]
    assert lines[1].split() == ["create-put", "unsafe", "10", *GUARANTEES[0].sentence.split()]
    assert lines[2:4] == ["1 unsafe; 8 functions, 2 endpoints", "3 requests, $0.015 on Amazon S3"]
    assert lines[-3].startswith("create-put is unsafe: it is broken (Delta Lake, ")
    unanswered = "no answer (connection closed after the last byte was sent)"
    assert lines[-2:] == [
        f'   0.500000 s  function 3: PUT /b/k [if-match: "e", 5,000 bytes] -> {unanswered}',
        "   0.500000 s  function 1: GET /b/k -> 200 'own'",
    ]
    [entry] = found.to_json()["guarantees"]
    assert entry["proof"][0]["body"] == {"bytes": 5000, "repeats": "x" * 2000}
    assert (entry["verdict"], entry["at_most"]) == ("unsafe", None)


def test_objects_that_are_left_are_named() -> None:
    assert [*result(GuaranteeVerdict.SAFE, left=2).lines("text")][
        -1
    ] == "2 objects could not be deleted"


def test_the_cost_of_requests() -> None:
    requests = {"PUT": 1000, "LIST": 1000, "POST": 1000, "GET": 10_000, "HEAD": 0, "DELETE": 9}
    assert cost_of(requests, load_prices()) == pytest.approx(0.019)
