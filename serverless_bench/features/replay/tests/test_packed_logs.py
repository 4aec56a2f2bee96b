"""Logs of other people in a job: a bound of their cost, and no surprising number."""

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.features.replay.schedule import unpack
from tests.data.packed import WRONG, text_of


@pytest.mark.parametrize("data", WRONG, ids=range(len(WRONG)))
def test_a_log_of_other_numbers_or_a_bomb_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="log"):
        unpack(text_of(data))
