"""Trust in settings files, and how the user expresses it."""

import json
import os
import pty
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.process import trust
from tests.commands.command import COMMAND, Call

NOT_TRUSTED = ", but not prices: it is not trusted (sbench trust)"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without settings and without trusted files."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home" / name.lower()))
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


def test_one_line_names_the_file_and_its_ignored_settings(call: Call, here: Path) -> None:
    here.write_text('number = 7\nprices = "none.toml"\n')
    assert planned(call) == (7, f"note: settings come from {here}{NOT_TRUSTED}\n")
    here.write_text("number = 8\n[write]\nclient = 'wire'\n")
    assert planned(call) == (8, f"note: settings come from {here}\n")
    assert "settings" not in call("ls")[2], "nothing in it is for this command"


def test_a_file_that_the_user_named_counts_as_a_whole_and_alone(
    call: Call, here: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.write_text("number = 5\n")
    here.write_text('prices = "none.toml"\n')
    for before, variable in ((["--config", "sbench.toml"], ""), ([], "sbench.toml")):
        monkeypatch.setenv("SBENCH_CONFIG", variable)
        code, _, err = call(*before, "plan", "write")
        assert (code, "price file none.toml: No such file" in err) == (2, True), err
    monkeypatch.setenv("SBENCH_CONFIG", os.devnull)
    assert planned(call)[1] == ""
    monkeypatch.setenv("SBENCH_CONFIG", "nowhere.toml")
    assert "--config or SBENCH_CONFIG: file nowhere.toml does not exist" in call("plan", "write")[2]


def test_the_users_own_file_wins_over_one_that_is_not_trusted(
    call: Call, here: Path, own: Path
) -> None:
    own.write_text("retries = 2\n[write]\nnumber = 5\n")
    here.write_text('[write]\nnumber = 7\ntimeout = 2.0\nprices = "none.toml"\n')
    said = f"note: settings come from {here}{NOT_TRUSTED}, and from {own}\n"
    assert planned(call) == (5, said)
    here.write_text("[write]\nnumber = 7\n")
    assert call("trust", "--yes")[0] == 0
    assert planned(call) == (7, f"note: settings come from {own}, and from {here}\n")


def test_a_file_counts_as_a_whole_until_it_changes(call: Call, here: Path) -> None:
    here.write_text('number = 7\nprices = "none.toml"\n')
    code, out, err = call("trust")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "+number = 7",
        '+prices = "none.toml"',
        "sbench: cannot ask whether to trust sbench.toml as it is now: stdin is not a terminal",
        "hint: --yes, or name it with --config",
    ]
    assert call("trust", "--yes")[:2] == (0, "sbench.toml is trusted until it changes\n")
    assert call("trust") == (0, "sbench.toml is already trusted\n", "")
    assert call("trust", "ls")[1] == f"{here}: unchanged\n"
    assert "price file none.toml: No such file" in call("plan", "write")[2]
    here.write_text('number = 7\nprices = "other.toml"\n')
    changed = "it has changed since it was trusted"
    assert f", but not prices: {changed} (sbench trust)" in planned(call)[1]
    assert call("trust", "ls")[1] == f"{here}: {changed}\n"
    shown = call("trust")[2].splitlines()
    assert shown[:2] == ['-prices = "none.toml"', '+prices = "other.toml"']
    assert call("trust", "sbench.toml", "--forget")[1] == "sbench.toml is no longer trusted\n"
    assert NOT_TRUSTED in planned(call)[1]
    assert call("trust", "ls")[1] == ""


def test_at_a_terminal_it_asks(here: Path, tmp_path: Path) -> None:
    here.write_text('prices = "none.toml"\n')
    driver, terminal = pty.openpty()
    os.write(driver, b"y\n")
    process = subprocess.run(
        [*COMMAND, "trust"], cwd=tmp_path, stdin=terminal, capture_output=True, check=False
    )
    os.close(driver)
    os.close(terminal)
    assert process.stdout == b"sbench.toml is trusted until it changes\n"
    assert b"Trust sbench.toml as it is now? [y/N]" in process.stderr


def test_only_files_that_are_read_from_a_folder_are_trusted(call: Call, tmp_path: Path) -> None:
    assert "this folder has neither sbench.toml nor .lithops_config" in call("trust")[2]
    (tmp_path / "ci.toml").write_text("")
    code, _, err = call("trust", "ci.toml")
    assert (code, "hint: use --config in each command: sbench --config ci.toml" in err) == (2, True)
    (tmp_path / "sbench.toml").write_text("= 3")
    assert call("trust", "ls") == (0, "", ""), "no command takes less from a file"


def test_a_list_writable_by_others_is_not_trusted(call: Call, here: Path, home: Path) -> None:
    here.write_text('prices = "none.toml"\n')
    call("trust", "--yes")
    kept = home / "state/sbench/trusted.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    text = kept.read_text()
    kept.chmod(0o620)
    assert NOT_TRUSTED in planned(call)[1]
    kept.rename(home / "list")
    (home / "list").chmod(0o600)
    kept.symlink_to(home / "list")
    assert NOT_TRUSTED in planned(call)[1]
    for spoiled in ("", "[]", "{}", '{"x": 1}', text[:-3], "\0", text.replace("digest", "d")):
        kept.unlink()
        kept.write_text(spoiled)
        kept.chmod(0o600)
        assert NOT_TRUSTED in planned(call)[1]
    kept.parent.chmod(0o770)
    assert "other users may write to" in call("trust", "--yes")[2]


def test_a_link_is_not_the_file_that_it_leads_to(call: Call, here: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "trusted" / "sbench.toml"
    elsewhere.parent.mkdir()
    elsewhere.write_text('prices = "none.toml"\n')
    assert call("trust", str(elsewhere), "--yes")[0] == 0
    here.symlink_to(elsewhere)
    assert NOT_TRUSTED in planned(call)[1]


def test_keys_are_neither_shown_nor_kept(call: Call, tmp_path: Path, home: Path) -> None:
    keys = "  secret_access_key: MARKED\n  'api-key' : MARKED\n"
    (tmp_path / ".lithops_config").write_text(f"minio:\n{keys}redis: {{password: x, run: ./y}}\n")
    _, out, err = call("trust", "--yes")
    kept = (home / "state/sbench/trusted.json").read_text()
    assert "MARKED" not in out + err + kept
    assert "+  secret_access_key: ***" in err
    assert "+redis: {password: x, run: ./y}" in err, "what runs is not hidden by a word"


def test_concurrent_commands_lose_no_entry(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) / "sbench.toml" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda path: trust.trust(path, "number = 1"), paths)]
        [*pool.map(trust.forget, paths[::2])]
    assert {*trust.trusted()} == {*map(str, paths[1::2])}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=20), st.text(max_size=20))
def test_a_file_is_trusted_with_the_text_that_was_seen_and_no_other(
    tmp_path: Path, seen: str, found: str
) -> None:
    path = tmp_path / "sbench.toml"
    trust.trust(path, seen)
    assert (not trust.doubt(path, found)) == (seen == found)
    assert trust.doubt(path.with_name("other"), seen)
