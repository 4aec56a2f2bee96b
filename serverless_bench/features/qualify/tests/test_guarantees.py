"""The table of guarantees, and its names on the command line."""

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.qualify.guarantees import GUARANTEES, chosen


def names(*texts: str) -> list[str]:
    return [one.name for one in chosen(texts)]


def test_all_are_chosen_without_a_name() -> None:
    assert chosen(()) == GUARANTEES
    assert len({one.name for one in GUARANTEES}) == len(GUARANTEES)


def test_a_guarantee_or_a_program_is_named() -> None:
    assert names("ranges", "list-order") == ["list-order", "ranges"]
    assert names("terraform") == [one.name for one in GUARANTEES if "Terraform" in one.users]
    assert {"create-put", "lost-create"} <= {*names("Delta Lake")}


def test_another_name_is_rejected() -> None:
    with pytest.raises(UsageError, match="no guarantee or program 'range'") as raised:
        chosen(["range"])
    assert raised.value.hint == "did you mean ranges?"
