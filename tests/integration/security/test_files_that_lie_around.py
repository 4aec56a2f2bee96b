"""In an attacker's folder, files cause no program, no write and no request."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import pytest

from serverless_bench.cli.flags.of_jobs import executor_type
from serverless_bench.cli.flags.options import spelled
from serverless_bench.cli.main import command_names, main, open_command
from serverless_bench.features.stages.job_file import for_toml
from tests.commands.hostile_folder import HostileFolder, hostile_folder
from tests.commands.processes import PATIENCE_S
from tests.data import oplogs
from tests.fuzz.watched import Ended, Nursery, nursery
from tests.house.examples import SMALL, Command, examples
from tests.house.members import uses
from tests.stores.servers import Server, loopback

OF_FEATURES: Final[dict[str, Command]] = examples("COMMANDS")
CALLS: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "write": [(*SMALL, "--name", "a", "--key-file", "sbench-runs/keys"), (*SMALL, "--name", "b")],
    "read": [("--bucket", "mine", "--key-file", "sbench-runs/keys")],
    "mixed": [(*SMALL, "--operations", "3")],
    "resume": [("recorded",)],
    "clean": [("a",)],
    "ls": [()],
    "report": [("recorded",)],
    "store": [("status",), ("start",), ("stop",)],
    **{name: found.calls for name, found in OF_FEATURES.items()},
}
"""Calls of each command; OWN is a folder of the user's own."""
CODES: Final = {name: found.codes for name, found in OF_FEATURES.items()}
"""Exit codes of commands."""
DECISIVE: Final = ("endpoint-url", "bucket", "stack", "executor")
"""Settings of the current folder that stop commands which measure or delete."""
SERVERS: Final = ("serve", "lambda-host")
JOB: Final = """
name = "job"
[target]
bucket = "mine"
[[stages]]
name = "fill"
kind = "execute"
workload = "write"
number = 1
size = "1KiB"
[[stages]]
name = "tidy"
kind = "cleanup"
"""
TASK: Final = """
command = "write"
executor = "inline"
bucket = "mine"
number = 1
size = "1KiB"
"""
OPLOG: Final = oplogs.Request(start_ns=oplogs.BEGIN, end_ns=oplogs.BEGIN + oplogs.S)
OWN: Final = {
    "mine.py": "def work(context):\n    return 1\n",
    "job.toml": JOB,
    "task.toml": TASK,
    "theirs.yml": "target: s3://b/\nworkload: [{op: get, weight: 1}]\n",
    "theirs.csv": oplogs.oplog([OPLOG]),
}
UV: Final = str(Path(sys.executable).with_name("uv"))
USUAL: Final = (sys.executable, UV, "git", "uname")
"""Programs of sbench, and those by which Python identifies the machine."""


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[HostileFolder]:
    with hostile_folder(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store that the user named."""
    with loopback(log=tmp_path_factory.mktemp("store") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    commands = (open_command(name).callback.__module__ for name in command_names())
    modules = (f"serverless_bench.{name}" for name in WARM)
    with nursery(
        *commands, *modules, "rich.console", "rich.table", "scipy.stats", __name__
    ) as found:
        yield found


WARM: Final = (
    "features.scale.scaling",
    "metrics.summary",
    "driver.boto",
    "features.check.checked_run",
    "driver.run",
    "executors.inline",
    "executors.local_pool",
    "features.studies.report",
    "features.formats.exporters.csv",
    "features.formats.importers.warp",
    "features.history.showing",
    "features.lambda_host.server",
    "features.limit.result",
    "features.limit.search",
    "report.render",
    "report.text",
    "features.simulation.simulated_run",
    "features.loopback.server",
)
"""Modules that commands import when they run."""


def serve_briefly(arguments: Sequence[str]) -> int:
    """Run a server, and end it after it has printed its address."""

    def end() -> None:
        pause = threading.Event()
        while not os.fstat(1).st_size:
            pause.wait(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    return main(arguments)


def strange_programs(ended: Ended) -> set[str]:
    """Return the programs that a command itself started, except for usual ones."""
    starts = re.compile(r"(?:subprocess\.Popen|os\.exec|os\.posix_spawn|os\.system) \(b?'([^']+)'")
    return {*starts.findall("\n".join(ended.touched))} - {*USUAL}


def options_of(command: click.Command) -> Iterator[click.Option]:
    """Yield the flags of a command, and of the commands in it."""
    yield from (one for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from options_of(one)


def harm(folder: HostileFolder, option: click.Option) -> object:
    """Return a value of a flag that does harm if it counts."""
    other = "lithops" if option.type is executor_type else "dask"
    values = {
        "endpoint_url": f"{folder.url('store')},{folder.url('store')}",
        "bucket": "az://theirs",
        "executor": other,
        "old": folder.program,
        "new": folder.program,
        "scheduler": folder.url("scheduler", "tcp"),
        "preload": "venv",
    }
    value: object = values.get(str(option.name), folder.url("other"))
    if isinstance(option.type, click.Path):
        value = str(folder.precious if not option.type.dir_okay else folder.home / ".config")
    return True if option.is_flag else [value] if option.multiple else value


def hostile_settings(folder: HostileFolder) -> str:
    """Return a settings file with every flag of every command, except those that stop commands."""
    lines = []
    for name in command_names():
        lines.append(f"[{name}]")
        flags = {str(one.name): one for one in options_of(open_command(name))}
        lines += [
            f"{flag} = {for_toml(harm(folder, one))}"
            for flag, one in flags.items()
            if spelled(flag) not in DECISIVE
        ]
    return "\n".join(lines)


FOUND: Final = {
    "history": (
        "[history]\nold = {program}\nnew = 'true'\n",
        ("history", "check", "--blocks", "6"),
    ),
    "key-file": ("[write]\nkey_file = {precious}\n", ("write", *SMALL)),
    "endpoint-url": ("endpoint_url = {url}\n", ("write", *SMALL, "--timeout", "1")),
    "azure": ("endpoint_url = {url}\n", ("write", "--bucket", "az://mine", "--number", "1")),
    "lithops": ("executor = 'lithops'\n", ("write", *SMALL)),
}
"""Settings of findings, and innocuous commands that obeyed them."""


def with_settings(folder: HostileFolder, text: str) -> None:
    values = {"program": folder.program, "precious": str(folder.precious)}
    values["url"] = folder.url("store")
    quoted = {name: for_toml(value) for name, value in values.items()}
    (folder.path / "sbench.toml").write_text(text.format(**quoted))


@pytest.mark.parametrize("name", FOUND)
def test_a_settings_file_of_the_folder_does_no_harm(
    sbench: Nursery, theirs: HostileFolder, store: Server, name: str
) -> None:
    text, words = FOUND[name]
    with_settings(theirs, text)
    environment = {**theirs.environment, "AWS_ENDPOINT_URL": store.endpoint_url}

    def harm_of(*arguments: str) -> tuple[bool, str, list[str], bool]:
        """Return executed programs, the protected file's content, contacted servers, and the
        output."""
        ended = sbench(theirs.path, *arguments, environment=environment, limit_s=PATIENCE_S)
        message = f"{theirs.path / 'sbench.toml'} does not count" in ended.err
        return theirs.marker.exists(), theirs.precious.read_text()[:20], theirs.asked(), message

    assert harm_of(*words) == (False, "precious", [], True)
    if name in ("history", "key-file"):
        named = harm_of("--config", "sbench.toml", *words)
        assert named != (False, "precious", [], False), "this file does harm once it counts"


@uses("executor lithops")
def test_lithops_only_reads_a_configuration_in_the_folder_that_is_named(
    sbench: Nursery, theirs: HostileFolder, store: Server
) -> None:
    environment = {**theirs.environment, "AWS_ENDPOINT_URL": store.endpoint_url}

    def run(*arguments: str, **more: str) -> Ended:
        given = {**environment, **more}
        return sbench(theirs.path, *arguments, environment=given, limit_s=PATIENCE_S)

    words = ("write", *SMALL, "--executor", "lithops")
    ended = run(*words)
    assert (ended.code, theirs.marker.exists()) == (2, False), ended
    assert f"configured by {theirs.path / '.lithops_config'}, which you have not" in ended.err
    own = theirs.home / "own.json"
    own.write_text('{"lithops": {"backend": "localhost"}}')
    ended = run(*words, LITHOPS_CONFIG_FILE=str(own))
    assert (ended.code, theirs.marker.exists()) == (0, False), ended
    ended = run(*words, LITHOPS_CONFIG_FILE=".lithops_config")
    assert (ended.code, theirs.marker.exists()) == (0, True), ended


def test_localstack_is_installed_with_no_module_of_the_current_folder(
    sbench: Nursery, theirs: HostileFolder
) -> None:
    ended = sbench(theirs.path, "localstack", environment=theirs.environment, limit_s=PATIENCE_S)
    assert (ended.code, theirs.marker.exists(), theirs.asked()) == (5, False, []), ended


def test_every_command_is_safe_in_a_hostile_folder(
    sbench: Nursery, theirs: HostileFolder, store: Server, tmp_path: Path
) -> None:
    """No program runs, no file outside of runs changes, and only the user's store is contacted."""
    assert CALLS.keys() == {*command_names()}, "a new command needs a call here"
    own = tmp_path / "own"
    own.mkdir()
    for name, text in OWN.items():
        (own / name).write_text(text)
    (theirs.path / "sbench.toml").write_text(hostile_settings(theirs))
    before = theirs.kept()
    environment = {**theirs.environment, "AWS_ENDPOINT_URL": store.endpoint_url}
    for command, calls in CALLS.items():
        for arguments in calls:
            words = [word.replace("OWN", str(own)) for word in arguments]
            ended = sbench(
                theirs.path,
                command,
                *words,
                environment=environment,
                limit_s=PATIENCE_S,
                call=f"{__name__}:serve_briefly" if command in SERVERS else "",
            )
            assert ended.code in CODES.get(command, (0,)), (command, words, ended)
            assert "Traceback" not in ended.err
            assert strange_programs(ended) == set(), ended
            assert not theirs.marker.exists(), ended
            assert theirs.asked() == [], ended
    assert theirs.kept() == before
