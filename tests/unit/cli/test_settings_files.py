"""Settings files: the one that counts, and the one of the current folder, which does not."""

import json
import os
from pathlib import Path

import pytest

from tests.commands.command import Call
from tests.house.members import uses

pytestmark = uses("feature cost")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/config"))
    (tmp_path / "home/config/sbench").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Path of the settings file of the current directory."""
    return tmp_path / "sbench.toml"


@pytest.fixture
def own(home: Path) -> Path:
    """Path of the user's own settings file."""
    return home / "config/sbench/sbench.toml"


def planned(call: Call, *before: str) -> tuple[int, str]:
    """Return the number of functions in a plan, and the other output."""
    code, out, err = call(*before, "plan", "--format", "json", "write")
    assert code == 0, err
    return json.loads(out)["functions"], err


def test_a_named_file_counts_alone(
    call: Call, here: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.write_text("number = 5\n")
    here.write_text('number = 7\nbucket = "b"\n[plan]\nprices = "none.toml"\n')
    for before, variable in ((["--config", "sbench.toml"], ""), ([], "sbench.toml")):
        monkeypatch.setenv("SBENCH_CONFIG", variable)
        code, _, err = call(*before, "plan", "write")
        assert (code, "price file none.toml: No such file" in err) == (2, True), err
    here.write_text("number = 7\n")
    assert planned(call) == (7, f"note: settings come from {here}\n")
    for nothing in (os.devnull, "none"):
        monkeypatch.setenv("SBENCH_CONFIG", nothing)
        assert planned(call)[1] == ""
    monkeypatch.setenv("SBENCH_CONFIG", "nowhere.toml")
    assert "--config or SBENCH_CONFIG: file nowhere.toml does not exist" in call("plan", "write")[2]


def test_the_users_own_file_counts(call: Call, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.write_text("number = 8\n[write]\nclient = 'wire'\n")
    assert planned(call) == (8, f"note: settings come from {own}\n")
    assert "settings" not in call("ls")[2], "nothing in it is for this command"
    monkeypatch.chdir(own.parent)
    assert planned(call) == (8, f"note: settings come from {own}\n")


@pytest.mark.parametrize(
    "line",
    [
        'endpoint_url = "http://127.0.0.1:9"',
        'endpoint-url = "http://127.0.0.1:9"',
        '[read]\nbucket = "b"',
        'bucket_name = "b"',
        'stack = "s"',
        '[shuffle]\nexecutor = "inline"',
    ],
)
@pytest.mark.parametrize(
    "words", [("write", "--dry-run"), ("clean",), ("store", "clear", "--yes"), ("ab", "a", "b")]
)
def test_a_store_named_in_the_current_folder_stops_commands_that_would_use_another(
    call: Call, here: Path, line: str, words: tuple[str, ...]
) -> None:
    here.write_text(f"number = 7\n{line}\n")
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    problem, hint = err.splitlines()
    assert f"{here} does not count" in problem
    assert "--config none" in hint
    assert str(here) not in call("--config", "none", *words)[2]
    assert call(words[0], "--help")[0] == 0


@uses("feature examples")
def test_commands_that_only_look_go_on(call: Call, here: Path) -> None:
    here.write_text('bucket = "b"\n')
    code, _, err = call("examples")
    assert (code, len(err.splitlines()), f"note: {here} does not count" in err) == (0, 1, True)


def test_other_settings_of_the_current_folder_are_one_note(call: Call, here: Path) -> None:
    here.write_text('number = 7\nno-such-flag = 1\n[write]\nprices = "none.toml"\n')
    number, err = planned(call)
    assert number != 7
    assert (err.startswith(f"note: {here} does not count"), err.count("\n")) == (True, 1)
    here.write_text("")
    assert planned(call)[1] == ""


def test_trust_is_gone(call: Call) -> None:
    code, _, err = call("trust")
    assert (code, err.splitlines()) == (
        2,
        ["sbench: No such command 'trust'.", "hint: sbench --help"],
    )
