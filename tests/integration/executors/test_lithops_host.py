"""The process that runs Lithops ends with its driver, whenever that dies, and leaves nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE_S

ORDER = {"concurrency": 1, "timeout_s": 10, "event_age_s": 10}


@pytest.mark.parametrize("order", ["", json.dumps(ORDER) + "\n"], ids=["at once", "with an order"])
def test_a_host_whose_driver_is_gone_ends_without_a_word(tmp_path: Path, order: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    nobody, answers = os.pipe()
    os.close(nobody)
    host = subprocess.run(
        [sys.executable, "-P", "-m", "serverless_bench.executors.lithops_host"],
        input=order.encode(),
        stdout=answers,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch), "HOME": str(tmp_path)},
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(answers)
    assert (host.returncode, host.stderr) == (0, b"")
    assert list(scratch.iterdir()) == []


def test_a_host_without_room_for_its_files_says_so(tmp_path: Path) -> None:
    host = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_ROOM],
        input=json.dumps(ORDER).encode() + b"\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (host.returncode, host.stderr) == (0, b"")
    assert "No usable temporary directory" in json.loads(host.stdout)["problem"]


WITHOUT_ROOM = """
import tempfile
from serverless_bench.executors import lithops_host
tempfile._candidate_tempdir_list = lambda: []
lithops_host.main()
"""
