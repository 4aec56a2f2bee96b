"""A user's objective for a level."""

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_share
from serverless_bench.features.limit.block import Objective
from tests.tables import each_row


@each_row(
    ("text", "share"),
    [
        ("0.1%", 0.001),
        ("0.001", 0.001),
        ("5 %", 0.05),
        (".05", 0.05),
        ("0.03451061539437028", 0.03451061539437028),
        ("1e-05", 1e-5),
    ],
)
def test_shares_may_be_percent(text: str, share: float) -> None:
    assert parse_share(text, below=0.5) == pytest.approx(share)


@each_row("text", ["", "0", "0%", "50%", "1", "few", "-1%"])
def test_invalid_shares_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a share above 0% and below 50%"):
        parse_share(text, below=0.5)


def test_an_objective_has_a_part_for_each_criterion() -> None:
    assert Objective(p99_s=0.05).allowed == {"p99": 0.01}
    assert Objective(p99_s=0.05, errors=0.002).allowed == {"p99": 0.01, "errors": 0.002}
    with pytest.raises(UsageError, match="no objective to hold") as found:
        Objective()
    assert found.value.hint == "for example --p99 50ms --errors 0.1%"
