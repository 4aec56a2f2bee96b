"""Adding a command takes a folder and table lines, and a setting two files, as in CONTRIBUTING.md.

Both are added to one copy, because most tests cover both.
"""

import re
from collections.abc import Mapping, Sequence

import pytest

from tests.house.scratch import Scratch, scratch_copy

FILE = '''"""``sbench whence``."""

import click

from serverless_bench.cli.output.terminal import say


@click.command("whence")
def command() -> None:
    """Say where the code of this command is."""
    say(__file__)
'''
FOLDER = "serverless_bench/features/whence"
COMMAND = {
    f"{FOLDER}/__init__.py": '"""Where code is."""\n',
    f"{FOLDER}/command.py": FILE,
    f"{FOLDER}/tests/__init__.py": "",
    f"{FOLDER}/tests/examples.py": '"""Examples."""\n\n'
    "from tests.house.examples import Command\n\n"
    'COMMANDS = {"whence": Command((), 0, [()])}\n',
}
"""Files of the folder."""
COMMAND_EDITS = {
    "serverless_bench/features/__init__.py": {
        '    "plot": Command(': '    "whence": '
        'Command("Results", "ls", "whence.command:command"),\n',
        '    "plot": "Plot': '    "whence": "Say where the code of this command is.",\n',
    },
}
"""Steps of the page, by file: lines, before existing ones."""
SETTING_EDITS = {
    "serverless_bench/job/settings.py": {
        "    seed: Annotated[int": "    calm: Annotated[\n"
        '        bool, Meaning("Let functions be calm.", section="Transfer")\n'
        "    ] = False\n"
    },
    "serverless_bench/job/spec.py": {
        '    name: str = "job"\n': "    calm: bool = False\n",
        "    name\n        Name of the run": "    calm\n        Whether functions are calm.\n",
    },
}
"""Steps of the page, by file: lines, before existing ones."""
NAMED = (
    "tests/integration/cli/test_as_a_process.py::test_a_process_says_the_same[whence]",
    "serverless_bench/features/stages/tests/test_job_file.py",
)
"""Tests of what the page names, and of job files, where a setting is a key."""
IMPORTS = "tests/unit/base/test_imports.py::test"
TESTS = (
    *NAMED,
    *(f"tests/unit/cli/test_{name}.py" for name in ("command_line", "help", "wrong_values")),
    *(f"{IMPORTS}_{name}_waits_for_no_library" for name in ("help", "a_refusal")),
    f"{IMPORTS}_help_only_loads_declarations_of_flags",
    *("tests/unit/driver/test_settings.py", "tests/unit/job"),
    "tests/unit/base/test_public_names.py",
    *("tests/unit/rundir/test_archive.py", "tests/unit/rundir/test_planned.py"),
    *(
        "tests/unit/metrics/test_recorded_runs.py",
        "serverless_bench/features/history/tests/test_recorded.py",
    ),
    "tests/integration/documents/test_reference_page.py",
)
"""Tests of all commands, of settings and flags, of their saved forms, and of pages that are
generated from them. Other tests of the command line name the commands that they run, and a new
command or setting cannot fail them. Neither names a member of a family, as in tests/house.
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return scratch_copy(tmp_path_factory.mktemp("copy"))


def section(scratch: Scratch, title: str) -> str:
    page = (scratch.root / "CONTRIBUTING.md").read_text()
    return page.partition(f"### {title}\n")[2].partition("\n#")[0]


def edit(scratch: Scratch, edits: Mapping[str, Mapping[str, str]]) -> None:
    for name, lines in edits.items():
        for before, line in lines.items():
            scratch.insert(name, before, line)


def test_a_command_is_a_folder_and_its_lines_in_the_table(scratch: Scratch) -> None:
    message = section(scratch, "A feature")
    table = "serverless_bench/features/__init__.py"
    assert "`features/__init__.py`" in message
    assert "examples.py`" in message
    for path, text in COMMAND.items():
        (scratch.root / path).parent.mkdir(parents=True, exist_ok=True)
        (scratch.root / path).write_text(text)
    edit(scratch, COMMAND_EDITS)
    assert scratch.changed("serverless_bench") == {*COMMAND, table}
    assert "whence/command.py" in scratch.run("-m", "serverless_bench", "whence")
    assert "  whence " in scratch.run("-m", "serverless_bench", "--help")


def test_a_boolean_needs_two_files_of_the_package(scratch: Scratch) -> None:
    before, message = scratch.changed("serverless_bench"), section(scratch, "A setting")
    named = [f"serverless_bench/{path}" for path in re.findall(r"`(\w+/\w+\.py)`", message)]
    assert named == list(SETTING_EDITS)
    edit(scratch, SETTING_EDITS)
    assert scratch.changed("serverless_bench") - before == set(SETTING_EDITS)
    transfer = scratch.run("-m", "serverless_bench", "write", "--help").partition("Transfer:")[2]
    assert "--calm / --no-calm" in transfer.partition("\n\n")[0]
    job = ("--number", "1", "--mb", "1", "--run-dir", "runs", "--name", "own", "--calm")
    scratch.run("-m", "serverless_bench", "write", *job)
    assert '"calm":true' in (scratch.root / "runs/own/run.json").read_text().replace(" ", "")


@pytest.mark.parametrize(
    "tests", [NAMED, pytest.param(TESTS, marks=pytest.mark.full)], ids=["named", "all"]
)
def test_they_turn_no_test_red(scratch: Scratch, tests: Sequence[str]) -> None:
    assert {*SETTING_EDITS, *COMMAND} < scratch.changed("serverless_bench")
    scratch.test(*tests)
