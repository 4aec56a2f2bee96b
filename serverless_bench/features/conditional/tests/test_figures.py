"""Reports on conditional writes, from hand-made runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.conditional.load import ConditionalLoad
from serverless_bench.features.conditional.part import PART, Contention
from serverless_bench.features.conditional.shared_keys import Pattern
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from serverless_bench.report.base import headline
from serverless_bench.rundir.record import InvocationRecord, Lost, OperationRecord
from serverless_bench.rundir.rows import Access, Act, Ending
from tests.data.runs import S, job, lost, operation, outcome, record, saved

KEY = "sbench/run/conditional/register-00000000"


def commit(index: int, start: float, end: float, *, count: int = 1) -> OperationRecord:
    kind = OperationKind.INCREMENT
    made = operation(index, kind=kind, start_ns=round(start * S), end_ns=round(end * S))
    return replace(made, count=count, last_byte_sent_ns=None, first_byte_ns=None)


def write(
    at: int, version: str, base: str | None, start: float, ending: Ending = Ending.DONE
) -> Access:
    return Access(
        operation=at,
        key=KEY,
        act=Act.WRITE,
        version=version,
        base=base,
        start_ns=round(start * S),
        end_ns=round((start + 0.1) * S),
        ending=ending,
    )


def function(
    index: int, operations: Sequence[OperationRecord], accesses: Sequence[Access] = ()
) -> InvocationRecord:
    return replace(record(index, operations), accesses=tuple(accesses))


def found(
    path: Path, results: Sequence[InvocationRecord | Lost], pattern: Pattern = Pattern.INCREMENT
) -> Contention:
    of = replace(
        job(number=len(results), workload="conditional"), load=ConditionalLoad(pattern=pattern)
    )
    summary = summarize(saved(path / "run", [outcome(one) for one in results], of=of))
    contention = PART.results_in(summary)
    assert contention is not None
    wrong = bool(contention.violated_keys)
    assert (summary.exit_code() == ExitCode.CORRUPT) is wrong
    return contention


def test_fairness_is_jains_index_of_rates(tmp_path: Path) -> None:
    # Three commits in a second, and one commit in a second.
    fast = function(0, [commit(n, n / 3, (n + 1) / 3) for n in range(3)])
    slow = function(1, [commit(0, 0, 1)])
    assert found(tmp_path, [fast, slow]).fairness == pytest.approx(16 / (2 * 10))
    # A function that ends early had the same rate.
    short = function(0, [commit(0, 0, 0.5)])
    long = function(1, [commit(0, 0, 0.5), commit(1, 0.5, 1)])
    assert found(tmp_path / "even", [short, long]).fairness == pytest.approx(1)


def test_writes_are_classified_by_their_end(tmp_path: Path) -> None:
    endings = (Ending.REFUSED, Ending.REFUSED, Ending.CONFLICT, Ending.UNKNOWN, Ending.DONE)
    tries = [write(0, f"0.0.{n}", None, n / 10, ending) for n, ending in enumerate(endings)]
    says = found(tmp_path, [function(0, [commit(0, 0, 1)], tries)])
    assert (says.refused, says.conflicts, says.unknown_writes) == (2, 1, 1)
    assert (says.commits, says.retries_per_commit, says.violated_keys) == (1, 4, 0)


def test_two_functions_that_replaced_one_version_are_named(tmp_path: Path) -> None:
    one = function(0, [commit(0, 0, 1)], [write(0, "0.0.0", None, 0.1)])
    two = function(1, [commit(0, 0, 1)], [write(0, "1.0.0", None, 0.3)])
    says = found(tmp_path, [one, two])
    assert (says.lost_updates, says.commits_per_s) == (1, None)
    (violation,) = says.violations
    assert (violation.fault, violation.functions) == ("forked", (0, 1))
    assert violation.versions == ("", "0.0.0", "1.0.0")


def test_the_first_line_begins_with_the_updates_that_are_lost(tmp_path: Path) -> None:
    results = [
        function(at, [commit(0, 0, 1)], [write(0, f"{at}.0.0", None, at / 10)]) for at in range(3)
    ]
    of = replace(
        job(number=3, workload="conditional"), load=ConditionalLoad(pattern=Pattern.INCREMENT)
    )
    run = saved(tmp_path / "run", [outcome(one) for one in results], of=of)
    first, _, counts = headline(summarize(run)).partition("; ")
    assert first == "at least 2 acknowledged updates are LOST"
    assert counts.startswith("3 of 3 functions ok")


def test_a_correct_store_is_said_to_have_lost_no_update(tmp_path: Path) -> None:
    results = [
        function(0, [commit(0, 0, 1)], [write(0, "0.0.0", None, 0)]),
        function(1, [commit(0, 0, 1)], [write(0, "1.0.0", "0.0.0", 0.5)]),
    ]
    of = replace(
        job(number=2, workload="conditional"), load=ConditionalLoad(pattern=Pattern.INCREMENT)
    )
    run = saved(tmp_path / "run", [outcome(one) for one in results], of=of)
    assert headline(summarize(run)).startswith("no update lost: 2 commits; 2 of 2 functions ok")


def test_a_version_may_be_of_a_function_that_is_lost(tmp_path: Path) -> None:
    rests = function(0, [commit(0, 0, 1)], [write(0, "0.0.0", "1.0.0", 0.1)])
    assert found(tmp_path, [rests, lost(1)]).violated_keys == 0
    there = function(1, [])
    (violation,) = found(tmp_path / "there", [rests, there]).violations
    assert violation.fault == "phantom"


def test_a_claim_refused_to_all_is_a_violation(tmp_path: Path) -> None:
    taken = commit(0, 0, 1, count=0)
    refused = [write(0, "0.0.0", None, 0.1, Ending.REFUSED)]
    says = found(tmp_path, [function(0, [taken], refused)], Pattern.CLAIM)
    assert [(one.fault, one.functions) for one in says.violations] == [("unclaimed", (0,))]
    # If a function left no record, it may hold the claim.
    other: list[InvocationRecord | Lost] = [function(0, [taken], refused), lost(1)]
    assert found(tmp_path / "lost", other, Pattern.CLAIM).violations == ()


def test_a_run_that_does_not_contend_has_no_such_figures(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [outcome(record(0, [operation()]))])
    assert "contention" not in summarize(run).parts
