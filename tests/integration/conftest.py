import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.other_user import Stranger, stranger
from tests.commands.processes import Family


@pytest.fixture
def family() -> Iterator[Family]:
    """All processes that a test starts with this mark in their environment; the rest ends with the
    test."""
    members = Family()
    yield members
    for process in members.members():
        process.kill()


@pytest.fixture(scope="module")
def nobody() -> Iterator[Stranger]:
    """Another user of this machine."""
    with stranger() as found:
        yield found


@pytest.fixture(scope="module")
def open_place() -> Iterator[Path]:
    """A directory that anybody can enter, so that its location protects no file."""
    place = Path(tempfile.mkdtemp(prefix="sbench-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)
