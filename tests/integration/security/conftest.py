import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.other_user import Stranger, stranger


@pytest.fixture(scope="module")
def nobody() -> Iterator[Stranger]:
    """Another user of this machine."""
    with stranger() as found:
        yield found


@pytest.fixture(scope="module")
def open_place() -> Iterator[Path]:
    """A directory that anybody can enter: nothing in it is safe because of where it lies."""
    place = Path(tempfile.mkdtemp(prefix="sbench-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)
