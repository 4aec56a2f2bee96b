"""What `sam build` has done by ``pack.py``, with whatever ``python3`` there is."""

import ast
import os
import subprocess
import sys
from pathlib import Path

from tests.sam import ROOT, RUNTIME

PACK = ROOT / "function" / "recipe" / "pack.py"
OLD = f"""
import runpy, sys
sys.argv, sys.version_info = sys.argv[1:], (3, 9, 6, "final", 0)
runpy.run_path({str(PACK)!r}, run_name="__main__")
"""
"""Runs it as that of macOS would, but for the syntax."""
OFFLINE = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}


def pack(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=OFFLINE
    )


def test_python_3_9_can_read_it() -> None:
    ast.parse(PACK.read_bytes(), feature_version=(3, 9))


def test_an_older_python_leaves_it_to_the_runtimes(tmp_path: Path) -> None:
    done = pack("-c", OLD, PACK, tmp_path, RUNTIME)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "serverless_bench/worker/handler.py").exists()
    assert len([*tmp_path.rglob("*.pyc")]) == len([*tmp_path.rglob("*.py")])


def test_an_older_python_by_itself_is_one_line(tmp_path: Path) -> None:
    done = pack("-c", OLD, PACK, tmp_path, "python3.99")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "pack.py needs Python 3.11 or later" in line
    assert not [*tmp_path.iterdir()]


def test_without_the_runtimes_python_there_is_no_bytecode(tmp_path: Path) -> None:
    done = pack(PACK, tmp_path, "python3.99")
    assert done.returncode == 0
    assert "no python3.99 here" in done.stderr
    assert [*tmp_path.rglob("*.py")]
    assert not [*tmp_path.rglob("*.pyc")]
