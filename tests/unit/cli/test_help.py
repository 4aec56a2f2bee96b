"""Readable help: groups, choices, suggestions for typing errors, and completion in shells."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from serverless_bench.cli.flags.options import Parsed
from serverless_bench.cli.main import COMMANDS, GROUPS, command_names, commands, open_command
from serverless_bench.cli.output.terminal import MANY, REST, SECTIONS, sectioned
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.report import REPORTERS
from tests.commands.command import Call
from tests.data import runs
from tests.house.members import EVERY_WORKLOAD, RIGS, uses
from tests.tables import each_row


def leaves() -> dict[str, click.Command]:
    """Return all commands, with both names for those in groups."""
    found: dict[str, click.Command] = {}
    for name in command_names():
        command = open_command(name)
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": one for inner, one in command.commands.items()}
        else:
            found[name] = command
    return found


LEAVES = leaves()


@uses(*RIGS, "feature studies")
def test_commands_stand_in_groups(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert list(GROUPS) == ["Run", "Results", "Compare", "Stores", "AWS", "Lab", "Studies"]
    # The groups follow each other, and each has its commands below it.
    words = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.strip()]
    shown = [word for word in words if word in command_names()]
    assert shown == command_names()
    assert {*shown} == {name for group in GROUPS.values() for name in group}
    for title in GROUPS:
        assert f"\n{title}:\n" in out


def helps(name: str) -> dict[str, str]:
    """Return what the help says about each flag of a command."""
    command = LEAVES[name]
    context = click.Context(command, info_name=name)
    records = [
        (option.name, option.get_help_record(context))
        for option in command.params
        if isinstance(option, click.Option)
    ]
    return {str(flag): record[1] for flag, record in records if record}


@each_row("name", LEAVES)
def test_a_default_is_shown_once_and_a_duration_with_its_unit(name: str) -> None:
    for flag, text in helps(name).items():
        assert text.count("[default: ") <= 1, flag
    for option in LEAVES[name].params:
        if isinstance(option.type, Parsed) and option.type.name == "duration":
            assert not re.search(r"\[default: [\d.]+[\];]", helps(name)[str(option.name)])


@uses("feature limit", "feature scale", "feature why")
@each_row("series", ["limit", "scale", "why"])
def test_a_series_describes_flags_in_words_that_are_true_for_each_job(series: str) -> None:
    texts = helps(series)
    for flag in ("number", "mb", "objects"):
        assert texts.get(flag, "[default: that of the job]").endswith("[default: that of the job]")
    for flag in ("mb", "objects", "size", "read_times", "connections", "part_size"):
        assert not re.search("[Ff]ile|32 MiB", texts[flag]), flag


@each_row("name", LEAVES)
def test_every_flag_is_in_a_section(name: str) -> None:
    command = LEAVES[name]
    if len(command.params) >= MANY:
        titles = dict(sectioned(command))
        assert [option.opts for option in titles.pop(REST, [])] == []
        listed = [option for options in titles.values() for option in options]
        assert len({id(option) for option in listed}) == len(listed)
        assert set(listed) == {p for p in command.params if isinstance(p, click.Option)}


@uses(*EVERY_WORKLOAD, *RIGS, "feature studies")
def test_every_listed_flag_exists() -> None:
    shared = [command for name, command in LEAVES.items() if name not in {"serve", "lambda-host"}]
    flags = {flag.lstrip("-") for command in shared for p in command.params for flag in p.opts}
    listed = " ".join(SECTIONS.values()).split()
    assert set(listed) - flags == set()
    assert len(listed) == len(set(listed))


def test_flags_of_a_run_stand_in_sections_with_the_most_used_first(call: Call) -> None:
    out = call("write", "--help-all")[1]
    titles = ["Workload", "Target", "Transfer", "Functions", "Remote functions", "Output", "Help"]
    places = [out.index(f"\n{title}:\n") for title in titles]
    assert places == sorted(places)
    assert out.index("--number") < out.index("--size") < out.index("--compressibility")


@uses("executor lambda", "executor inline")
def test_flags_for_remote_functions_are_shown_where_functions_are_remote(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title, line = (
        "\nRemote functions:\n",
        "\n--help-all shows 14 more flags, for remote functions.\n",
    )
    for words in ((), ("--executor", "inline")):
        out = call("write", *words, "--help")[1]
        assert (title in out, "--stack" in out, out.endswith(line)) == (False, False, True)
    (tmp_path / "far.toml").write_text('executor = "lambda"\n')
    outs = [
        call("write", "--help-all")[1],
        call("write", "--executor", "lambda", "--help")[1],
        call("--config", "far.toml", "write", "--help")[1],
    ]
    monkeypatch.setenv("SBENCH_EXECUTOR", "lambda")
    for out in (*outs, call("write", "--help")[1]):
        assert (title in out, "--stack" in out, line in out) == (True, True, False)


def test_few_flags_are_one_list(call: Call) -> None:
    out = call("report", "--help")[1]
    assert "\nOptions:\n" in out
    assert "\nWorkload:\n" not in out


def test_choices_are_shown(call: Call) -> None:
    out = "".join(call("write", "--help")[1].split())
    for names in (CLIENTS, EXECUTORS, REPORTERS):
        assert f"[{'|'.join(sorted(names))}]" in out


@uses(*RIGS, "feature studies", "workload read")
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("wirte",), "'write'"),
        (("lambda_hots",), "'lambda-host'"),
        (("store", "strat"), "'start'"),
        (("study", "shwo"), "'show'"),
        (("write", "--numbr", "3"), "'--number'"),
        (("read", "--keyfile", "k"), "'--key-file'"),
    ],
)
def test_similar_names_are_suggested(call: Call, arguments: tuple[str, ...], meant: str) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    first, hint = err.splitlines()
    assert "Did you mean" in first
    assert meant in first
    assert hint.startswith("hint: sbench")


def test_dissimilar_names_get_no_suggestion(call: Call) -> None:
    assert call("qqqq")[2] == "sbench: No such command 'qqqq'.\nhint: sbench --help\n"


def complete(words: list[str], begun: str) -> list[str]:
    shell = BashComplete(commands, {"token_normalize_func": str}, "sbench", "_SBENCH_COMPLETE")
    return [item.value for item in shell.get_completions(words, begun)]


@uses("workload read", "feature plot")
@each_row(
    ("words", "begun", "offered"),
    [
        ([], "re", [name for name in COMMANDS if name.startswith("re")]),
        (["store"], "st", ["start", "stop", "status"]),
        (["write"], "--num", ["--number"]),
        (["write", "--client"], "s3", [name for name in CLIENTS if name.startswith("s3")]),
        (["write", "--executor"], "l", [name for name in EXECUTORS if name[0] == "l"]),
        (["report", "--format"], "m", ["markdown"]),
        (["ls", "--format"], "", ["text", "json", "jsonl"]),
        (["report"], "small", ["small-2", "small-1"]),
        (["resume"], "la", ["large"]),
        (["clean"], "", ["small-2", "small-1", "large"]),
    ],
)
def test_the_shell_completes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    begun: str,
    offered: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("small-2", "small-1", "large")):
        run = runs.saved(tmp_path / "sbench-runs" / name, [])
        os.utime(run.path / "run.json", ns=(0, 10**18 - age))
    assert sorted(complete(words, begun)) == sorted(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from serverless_bench.cli.main import main; main([])"],
        env={**os.environ, "_SBENCH_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=False,
    )
    # click looks for bash, and prints a warning if it is too old.
    assert done.returncode == 0, done.stderr
    assert "_SBENCH_COMPLETE" in done.stdout


@uses("feature cost", "feature plot")
def test_completion_imports_no_command() -> None:
    code = "from serverless_bench.cli.main import main; main([])"
    show = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run(
        [sys.executable, "-c", f"{show}\n{code}"],
        env={
            **os.environ,
            "_SBENCH_COMPLETE": "bash_complete",
            "COMP_WORDS": "sbench pl",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,plot", "plain,plan"]
    assert "serverless_bench.features.plot.command" not in done.stderr.split()


@uses("feature demo", "feature studies")
@pytest.mark.parametrize("name", ["", "aws", "study", "history", "store"])
def test_a_group_alone_prints_its_help(call: Call, name: str) -> None:
    code, out, error = call(*name.split())
    assert (code, out) == (2, "")
    before, _, after = error.partition("Usage: ")
    assert call(*name.split(), "--help") == (0, f"Usage: {after}", "")
    # Each line before it has a command after its last colon.
    begin = [line.rpartition(":  ")[2].split() for line in before.splitlines() if line]
    assert [words[:2] for words in begin] == (
        [] if name else [["sbench", "demo"], ["sbench", "write"], ["sbench", "aws"]]
    )
    for _, *words in begin:
        assert call(*words, "--help")[0] == 0
