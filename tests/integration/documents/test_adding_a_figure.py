"""Adding a figure as CONTRIBUTING.md says takes two files of the package and turns no test red."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.quoted import ROOT

COPIED = ("Makefile", "pyproject.toml", "CONTRIBUTING.md", "docs", "serverless_bench", "tests")
EDITS = {
    "serverless_bench/analysis/summary.py": {
        "    failed_operations: int\n": "    good_operations: int\n",
        '        "failed_operations": ': '        "good_operations": int(good.sum()),\n',
    },
    "serverless_bench/analysis/figures.toml": {
        "failed_operations = ": 'good_operations = { is = "the others", unit = "operations" }\n'
    },
    "tests/reference/report.py": {
        '        "failed_operations": ': '        "good_operations": len(good),\n'
    },
}
"""By file, what the page asks for: a line, before one that is there."""
TESTS = (
    *("tests/unit/analysis/test_figures.py", "tests/unit/analysis/test_recorded_runs.py"),
    *("tests/unit/analysis/test_summary.py", "tests/unit/analysis/test_totals.py"),
    "tests/unit/analysis/test_reference.py::test_the_reference_has_every_field",
    *("tests/unit/reporters/test_reporters.py", "tests/unit/reporters/test_page.py"),
    "tests/integration/documents/test_reference_page.py",
)
"""Tests of figures, of what shows them, and of pages that are made from them."""
COMPARED = """
from tests.reference.making import Shape
from tests.unit.analysis.test_reference import agree
for seed in range(10):
    agree(Shape(seed=seed, functions=3, operations=4, traits={"failures"}), with_warmup=False)
"""
"""A few of the runs of which the reference computes every figure again."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the page names."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy), "CI": "1", "MAKEFLAGS": ""}
    done = subprocess.run(
        command, cwd=copy, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def differing(copy: Path, folder: str) -> set[str]:
    """Return the files of a folder that are not as they are here."""
    paths = {path.relative_to(copy) for path in (copy / folder).rglob("*") if path.is_file()}
    return {
        str(path)
        for path in paths
        if "__pycache__" not in path.parts
        and not ((ROOT / path).is_file() and filecmp.cmp(copy / path, ROOT / path, shallow=False))
    }


def test_a_figure_needs_two_files_of_the_package_and_turns_no_test_red(copy: Path) -> None:
    page = (copy / "CONTRIBUTING.md").read_text()
    section = page.partition("### A figure of the report\n")[2].partition("\n#")[0]
    for name, lines in EDITS.items():
        path = copy / name
        text = path.read_text()
        for before, line in lines.items():
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, line + before)
        path.write_text(text)
    made = re.findall(r"`make ([a-z ]+)`", section)
    assert made == ["report reference", "golden"]
    binaries = Path(sys.executable).parent
    for targets in made:
        # What is installed here is what the copy needs.
        run(copy, "make", "-o", ".venv/dev", f"BIN={binaries}", *targets.split())
    assert differing(copy, "serverless_bench") == {name for name in EDITS if name[0] == "s"}
    run(copy, sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *TESTS)
    run(copy, sys.executable, "-c", COMPARED)
