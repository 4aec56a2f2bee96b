"""What a failed test shows beside its error."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.twice import REPEATED, two_of_three

ROOT = Path(__file__).parents[3]
FAILS = """
def test_that_fails(tmp_path):
    (tmp_path / "runs" / "w").mkdir(parents=True)
    (tmp_path / "runs" / "w" / "run.json").touch()
    (tmp_path / "store.log").write_text("".join(f"line {n}\\n" for n in range(100)))
    assert 1 == 2
"""


def test_a_failure_names_its_circumstances(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(FAILS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.failures", "-p", "no:cacheprovider"]
    where = ["--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "kept"), str(file)]
    done = subprocess.run(
        [*command, "-c", "/dev/null", *where],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    output = done.stdout
    assert "python -m pytest -n 0 -m '' test_one.py::test_that_fails" in output
    assert "own CPU time" in output
    run = next((tmp_path / "kept").rglob("run.json")).parent
    assert f"run directory {run}" in output
    assert "line 99" in output
    assert "line 79" not in output


class Sequence:
    def __init__(self, *outcomes: bool) -> None:
        self.left = list(outcomes)

    def check(self) -> None:
        assert self.left.pop(0), "wrong"


@pytest.mark.parametrize("outcomes", [(True, True), (True, False, True), (False, True, True)])
def test_two_of_three_pass(outcomes: tuple[bool, ...]) -> None:
    output = len(REPEATED)
    tries = Sequence(*outcomes)
    two_of_three(tries.check)
    assert tries.left == []
    assert [line.partition(":")[0] for line in REPEATED[output:]] == [
        "two of three tries passed, one failed"
    ] * (len(outcomes) - 2)
    del REPEATED[output:]


@pytest.mark.parametrize("outcomes", [(False, False), (True, False, False), (False, True, False)])
def test_two_of_three_fail(outcomes: tuple[bool, ...]) -> None:
    tries = Sequence(*outcomes)
    with pytest.raises(AssertionError, match="wrong"):
        two_of_three(tries.check)
    assert tries.left == []
