"""Connections that a process keeps open, and the end of their reuse."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from serverless_bench.base import process
from serverless_bench.base.clock import wall_ns
from serverless_bench.base.process import Kept, rest
from serverless_bench.base.units import NS_PER_S


@dataclass
class Connections:
    """Something that can be closed."""

    made: list["Connections"] = field(default_factory=list)
    closed: bool = False

    def close(self) -> None:
        self.closed = True


def make(*_: object) -> Connections:
    return Connections()


@pytest.fixture(autouse=True)
def _rested() -> Iterator[None]:
    yield
    process._rests.clear()


def test_the_same_settings_find_it_open() -> None:
    mine = Kept()
    first = mine.open(make, "a")
    assert mine.open(make, "a") is first
    assert mine.open(make, "b") is not first
    assert first.closed


def test_a_short_pause_has_no_effect() -> None:
    mine = Kept()
    first = mine.open(make, "a")
    rest()
    assert mine.open(make, "a") is first


def test_after_a_long_pause_it_is_reopened_once() -> None:
    mine = Kept()
    first = mine.open(make, "a")
    rest(wall_ns() - 60 * NS_PER_S)
    second = mine.open(make, "a")
    assert second is not first
    assert first.closed
    # The pause is over, and the second one has been used since.
    assert mine.open(make, "a") is second


def test_a_long_event_is_no_rest() -> None:
    mine = Kept()
    rest(wall_ns() - 60 * NS_PER_S)
    first = mine.open(make, "a")
    assert mine.open(make, "a") is first
