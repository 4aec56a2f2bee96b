"""Adding a figure as in CONTRIBUTING.md takes two files of the package and breaks no test."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.house.scratch import scratch_copy

EDITS = {
    "serverless_bench/metrics/summary.py": {
        "    failed_operations: int\n": "    good_operations: int\n",
        '        "failed_operations": ': '        "good_operations": int(good.sum()),\n',
    },
    "serverless_bench/metrics/figures.toml": {
        "failed_operations = ": 'good_operations = { is = "the others", unit = "operations" }\n'
    },
    "tests/reference/report.py": {
        '        "failed_operations": ': '        "good_operations": len(good),\n'
    },
}
"""Steps of the page, by file: a line before an existing one."""
NAMED = (
    "tests/unit/metrics/test_figures.py",
    "tests/unit/metrics/test_reference.py::test_the_reference_has_every_field",
)
"""Tests of what the page names."""
TESTS = (
    *(*NAMED, "tests/unit/metrics/test_recorded_runs.py"),
    *("tests/unit/metrics/test_summary.py", "tests/unit/metrics/test_totals.py"),
    *(
        "tests/unit/report/test_reporters.py",
        "serverless_bench/features/page/tests/test_page.py",
    ),
    "tests/integration/documents/test_reference_page.py",
)
"""Tests of figures, of their displays, and of pages that are generated from them."""
COMPARED = """
from tests.reference.making import Shape
from tests.unit.metrics.test_reference import agree
for seed in range(10):
    agree(Shape(seed=seed, functions=3, operations=4, traits={"failures"}), with_warmup=False)
"""
"""A few of the runs of which the reference computes every figure again."""


@pytest.mark.on_change(
    "CONTRIBUTING.md", "serverless_bench/metrics", "serverless_bench/report", "tests/reference"
)
@pytest.mark.parametrize(
    "tests", [NAMED, pytest.param(TESTS, marks=pytest.mark.full)], ids=["named", "all"]
)
def test_a_figure_needs_two_files_of_the_package_and_turns_no_test_red(
    tmp_path: Path, tests: Sequence[str]
) -> None:
    scratch = scratch_copy(tmp_path)
    page = (scratch.root / "CONTRIBUTING.md").read_text()
    section = page.partition("### A figure of the report\n")[2].partition("\n#")[0]
    for name, lines in EDITS.items():
        for before, line in lines.items():
            scratch.insert(name, before, line)
    made = re.findall(r"`make ([a-z ]+)`", section)
    assert made == ["golden tables"]
    for targets in made:
        scratch.make(*targets.split())
    assert scratch.changed("serverless_bench") == {name for name in EDITS if name[0] == "s"}
    scratch.test(*tests)
    scratch.run("-c", COMPARED)
