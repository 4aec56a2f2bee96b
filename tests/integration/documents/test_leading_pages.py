"""The pages for newcomers are short, and every command of the first is run; `make full` runs more.

The README's test runs those that are also in the README, those for a region of AWS on LocalStack.
Commands that are not run are checked by test_quoted_commands.py.
"""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.make_index import FEATURES
from serverless_bench.features.loopback.server import serving
from tests.documents.quoted import BLOCK, ROOT, quoted
from tests.integration.documents.test_readme import lines, replaced, shell

MOST_WORDS: Final = 900
RUN_AT_NIGHT: Final = ("own-store", "deciding", "replay")
PAGES: Final = ("first-run", "own-store", "aws", "report", "deciding")
STANDS_IN: Final = {
    "pip install": "true pip install",  # the README's test does
    "--mb 16": "--mb 1",
    "--duration 5": "--duration 1",
    "AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...": (
        "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=us-east-1"
    ),
    "https://store.example:9000": "$STORE",
    "sbench ab ": "verdict_of sbench ab --warm-up-blocks 0 ",
    "sbench history check": "verdict_of sbench history check",
    "old/bin/sbench": "sbench",
    "sbench limit": "within sbench limit",
    "--budget 5min": "--block 1s --budget 5s",
    "--numbers 1,2,4,8": "--numbers 1,2,3",
}
"""Commands to run, by those of a page."""
WITHIN: Final = 'within() { "$@" || case $? in 10 | 14 | 15) ;; *) return 1 ;; esac; }'
"""Runs `sbench limit`, with any result that it finds in so short a time."""
LEAVES: Final = ("--name ", "history add")
"""Parts of commands whose results later commands of a page need."""
SMALL: Final = "sbench write --number 2 --mb 1 --name w && sbench read --from w --name r"


def page_of(name: str) -> Path:
    """Return the page of a feature, or that of docs/ with this name."""
    page = FEATURES / name / "README.md"
    return page if page.exists() else ROOT / "docs" / f"{name}.md"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short(name: str) -> None:
    assert len(page_of(name).read_text("utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("name", [*PAGES, "replay"])
def test_every_command_to_type_is_among_the_checked_ones(name: str) -> None:
    page = page_of(name)
    typed = "".join(block for kind, block in BLOCK.findall(page.read_text("utf-8")) if kind == "sh")
    ours = len(re.findall(r"(?:^|&& )sbench ", typed, re.MULTILINE))
    assert ours
    checked = [command for command in quoted(page) if command.whole]
    assert len([command for command in checked if command.words[0] == "sbench"]) >= ours


@pytest.mark.on_change("docs/first-run.md", "serverless_bench/cli", "serverless_bench/report")
@pytest.mark.parametrize(
    "name",
    ["first-run", *(pytest.param(name, marks=pytest.mark.full) for name in RUN_AT_NIGHT)],
)
def test_every_command_of_a_page(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with serving() as server:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SBENCH_STORE_DIR": str(tmp_path / "store"),
            "STORE": server.endpoint_url,
        }
        before = [SMALL] if name == "deciding" else []
        shell([WITHIN, *before, *typed(name)], tmp_path, environment)


def typed(name: str) -> list[str]:
    """Return the lines of a page to type, with replacements for some of them."""
    found = BLOCK.findall(page_of(name).read_text("utf-8"))
    typed = "".join(block for kind, block in found if kind == "sh").splitlines()
    for reported, run in STANDS_IN.items():
        typed = [line.replace(reported, run) for line in typed]
    elsewhere = [*lines(wheel=True), *map(replaced, lines(wheel=False))]
    of_the_readme = [words(line) for line in elsewhere]
    return [
        line
        for line in typed
        if words(line) not in of_the_readme or any(word in line for word in LEAVES)
    ]


def words(line: str) -> list[str]:
    """Return the words of a command in one order: the order of flags has no meaning."""
    return sorted(shlex.split(line, comments=True))


def test_what_stands_in_is_for_something() -> None:
    texts = "\n".join(page_of(name).read_text("utf-8") for name in PAGES)
    assert [reported for reported in STANDS_IN if reported not in texts] == []
