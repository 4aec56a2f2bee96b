"""Adding a command as CONTRIBUTING.md says takes a file and a table line of the package."""

import re
from pathlib import Path

from tests.house.scratch import scratch_copy

FILE = '''"""``sbench whence``."""

import click

from serverless_bench.cli.output.terminal import say


@click.command("whence")
def command() -> None:
    """Say where the code of this command is."""
    say(__file__)
'''
EDITS = {
    "serverless_bench/cli/main.py": {
        '        "ls": "List': '        "whence": "Say where the code of this command is.",\n'
    },
    "tests/integration/cli/test_as_a_process.py": {'    "ls": ((': '    "whence": ((), 0),\n'},
    "tests/integration/security/test_files_that_lie_around.py": {
        '    "ls": [(': '    "whence": [()],\n'
    },
    "docs/versions.md": {"`contend`, `array`": "`whence`, "},
}
"""By file, what the page asks for: a line, or a name, before one that is there."""
TESTS = (
    *("tests/unit/cli", "tests/unit/package/test_imports.py", "tests/house/test_names.py"),
    "tests/integration/documents/test_versions.py",
    "tests/integration/cli/test_as_a_process.py::test_a_process_says_the_same[whence]",
)
"""Tests of all commands, and of what is said of them."""


def test_a_command_is_a_file_and_a_line_and_turns_no_test_red(tmp_path: Path) -> None:
    scratch = scratch_copy(tmp_path)
    page = (scratch.root / "CONTRIBUTING.md").read_text()
    section = page.partition("### A command\n")[2].partition("\n#")[0]
    paths = re.findall(r"(?:`|\()((?:cli|tests|docs)/\S+?)[`)]", section)
    file, *edited = (f"serverless_bench/{p}" if p.startswith("cli") else p for p in paths)
    assert edited == list(EDITS)
    (scratch.root / file.replace("NAME", "whence")).write_text(FILE)
    for name, lines in EDITS.items():
        for before, line in lines.items():
            scratch.insert(name, before, line)
    own = "serverless_bench/cli/commands/whence.py"
    assert scratch.changed("serverless_bench") == {own, "serverless_bench/cli/main.py"}
    assert "whence.py" in scratch.run("-m", "serverless_bench", "whence")
    assert "  whence " in scratch.run("-m", "serverless_bench", "--help")
    scratch.test(*TESTS)
