"""Every command that a document quotes is valid, with its flags and values."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from serverless_bench.cli.main import commands
from tests.documents.quoted import PAGES, ROOT, Quoted, check, quoted
from tests.house.removed import is_removed, skip_if_named, whole


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_quoted_command_is_one(page: Path) -> None:
    for command in quoted(page):
        if is_removed(command.words):
            continue
        try:
            check(command)
        except (AssertionError, click.ClickException, ImportError, SystemExit) as exc:
            raise AssertionError(f"{command}: {exc!r}") from exc


@whole
def test_there_are_many() -> None:
    found = [command for page in PAGES for command in quoted(page)]
    assert len([command for command in found if command.whole]) > 70
    assert {command.words[0] for command in found} >= {"sbench", "make", "python", "pip"}


def command_of(text: str, *, whole: bool = True) -> Quoted:
    return Quoted(ROOT / "README.md", tuple(shlex.split(text)), whole)


@pytest.mark.parametrize(
    "text",
    [
        "sbench nothing",
        "sbench write --no-such-flag",
        "sbench write --number many",
        "sbench write --number N",
        "sbench import",
        "sbench study",
        "sbench study run no-such-experiment",
        "sbench study nothing",
        "sbench run examples/nothing.toml",
        "sbench lambda-host -- sbench write --nothing",
        "sbench limit write --nothing",
        "sbench plan --stack sbench write --nothing",
        "sbench plan nothing",
        "sbench history check --old 'old/bin/sbench write --nothing' --new 'sbench write'",
        "sbench export r --format nothing",
        "make nothing",
        "python -m benchmarks.nothing",
        "python -m benchmarks.clients --nothing",
        "python examples/nothing.py",
        "python -m pytest tests/unit/test_nothing.py",
        "pip install serverless-bench[nothing]",
        "nobody knows",
    ],
)
def test_invalid_commands_are_found(text: str) -> None:
    skip_if_named([text])
    with pytest.raises((AssertionError, click.ClickException, ImportError, SystemExit)):
        check(command_of(text))


@pytest.mark.parametrize(
    "text", ["sbench import", "sbench study", "sbench write --number N", "sbench serve --tls"]
)
def test_a_sentence_may_leave_things_out(text: str) -> None:
    skip_if_named([text])
    check(command_of(text, whole=False))


def test_a_line_is_taken_apart_as_a_shell_does(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    lines: Sequence[str] = (
        "```sh",
        "A=1 sbench write --name 'a b' | head -c 3 > out && sam delete  # makes & sends",
        "```",
        "See `make",
        "demo`, `B=2 sbench report DIR` and `sbench`.",
    )
    page.write_text("\n".join(lines))
    assert [(command.words, command.whole) for command in quoted(page)] == [
        (("sbench", "write", "--name", "a b"), True),
        (("head", "-c", "3"), True),
        (("sam", "delete"), True),
        (("make", "demo"), False),
        (("sbench", "report", "DIR"), False),
    ]


@pytest.mark.parametrize("name", ["wire", "boto3"])
def test_the_jobs_of_the_example_are_jobs(name: str) -> None:
    from serverless_bench.features.compare.task import load_task

    with commands.make_context("sbench", ["ab"]):
        task = load_task(ROOT / "examples" / f"{name}.toml")
    assert (task.job.workload, task.job.target.client) == ("write", name)
