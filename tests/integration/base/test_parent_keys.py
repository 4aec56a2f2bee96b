"""The socket over which a driver gives its keys to the processes that it starts."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from serverless_bench.base.parent_keys import ask_parent, serving_keys

KEYS = {"access_key": "A", "secret_key": "S", "token": None}
KILLED = """
import os, signal, sys
from serverless_bench.base.parent_keys import serving_keys
with serving_keys(lambda: None) as environment:
    print(*environment.values(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a short name, for this test only."""
    with tempfile.TemporaryDirectory(prefix="k-", dir="/tmp") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)


def answered(environment: dict[str, str]) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*next(iter(environment.items())))
        keys = ask_parent()
    return keys is not None and keys["access_key"] == "A"


def test_a_long_name_of_the_temporary_folder_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("x" * 90)
    folder.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with serving_keys(lambda: KEYS) as environment:
        assert answered(dict(environment))
        (path,) = map(Path, environment.values())
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.parent.exists()


def test_directories_of_killed_drivers_are_deleted(private: Path) -> None:
    """The next driver deletes the directory of a dead one, but not of one that runs."""
    with serving_keys(lambda: KEYS) as running:
        killed = subprocess.run(
            [sys.executable, "-c", KILLED],
            capture_output=True,
            text=True,
            check=False,
        )
        left = Path(killed.stdout.strip())
        assert left.is_socket(), killed
        foreign = private / "sbench-keys-foreign"
        foreign.mkdir()
        with serving_keys(lambda: KEYS):
            assert not left.parent.exists()
            assert foreign.exists(), "it has no lock: its driver may just be starting"
            assert answered(dict(running))
