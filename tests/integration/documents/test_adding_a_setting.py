"""Adding a boolean setting as CONTRIBUTING.md says takes two files of the package."""

import re
from pathlib import Path

from tests.house.scratch import scratch_copy

EDITS = {
    "serverless_bench/settings/job.py": {
        "    seed: Annotated[int": "    calm: Annotated[\n"
        '        bool, Harmless("Let functions be calm.", section="Transfer")\n'
        "    ] = False\n"
    },
    "serverless_bench/job/spec.py": {
        '    name: str = "job"\n': "    calm: bool = False\n",
        "    name\n        Name of the run": "    calm\n        Whether functions are calm.\n",
    },
}
"""By file, what the page asks for: lines, before some that are there."""
TESTS = (
    *("tests/unit/cli", "tests/unit/driver/test_settings.py", "tests/unit/driver/test_job_file.py"),
    *("tests/unit/job", "tests/unit/package/test_public_names.py"),
    *("tests/unit/rundir/test_archive.py", "tests/unit/rundir/test_planned.py"),
    *("tests/unit/analysis/test_recorded_runs.py", "tests/unit/history/test_recorded.py"),
    "tests/integration/documents/test_reference_page.py",
)
"""Tests of settings and flags, of what is saved of them, and of pages made from them."""


def test_a_boolean_needs_two_files_of_the_package_and_turns_no_test_red(tmp_path: Path) -> None:
    scratch = scratch_copy(tmp_path)
    page = (scratch.root / "CONTRIBUTING.md").read_text()
    section = page.partition("### A setting\n")[2].partition("\n#")[0]
    named = [f"serverless_bench/{path}" for path in re.findall(r"`(\w+/\w+\.py)`", section)]
    assert named == list(EDITS)
    for name, lines in EDITS.items():
        for before, line in lines.items():
            scratch.insert(name, before, line)
    assert scratch.changed("serverless_bench") == set(EDITS)
    transfer = scratch.run("-m", "serverless_bench", "write", "--help").partition("Transfer:")[2]
    assert "--calm / --no-calm" in transfer.partition("\n\n")[0]
    job = ("--number", "1", "--mb", "1", "--run-dir", "runs", "--name", "own", "--calm")
    scratch.run("-m", "serverless_bench", "write", *job)
    assert '"calm":true' in (scratch.root / "runs/own/run.json").read_text().replace(" ", "")
    scratch.test(*TESTS)
