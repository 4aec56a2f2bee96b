from collections.abc import Iterator

import pytest

from tests.commands.processes import Family


@pytest.fixture
def family() -> Iterator[Family]:
    """Whatever a test starts with this mark in its environment; what is left ends with the test."""
    members = Family()
    yield members
    for process in members.members():
        process.kill()
