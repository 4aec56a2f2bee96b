"""The work of ``pack.py`` for `sam build`, with any ``python3``."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serverless_bench.features.aws.stack.folder import write_folder
from tests.clouds.sam import RUNTIME

OFFLINE = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    write_folder(tmp_path / "stack")
    return tmp_path / "stack" / "serverless_bench/features/aws/stack/recipe/pack.py"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=OFFLINE
    )


def test_python_3_9_can_read_it(pack: Path) -> None:
    ast.parse(pack.read_bytes(), feature_version=(3, 9))


def test_with_the_runtimes_python_everything_is_compiled(pack: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    done = run(pack, folder, RUNTIME)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "serverless_bench/features/remote/handler.py").exists()
    assert len([*folder.rglob("*.pyc")]) == len([*folder.rglob("*.py")])


def test_without_the_runtimes_python_there_is_no_bytecode(pack: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    done = run(pack, folder, "python3.99")
    assert done.returncode == 0
    assert "no python3.99 here" in done.stderr
    assert [*folder.rglob("*.py")]
    assert not [*folder.rglob("*.pyc")]
