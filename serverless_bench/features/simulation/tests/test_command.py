"""``sbench plan --simulate`` as users type it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.command import Call
from tests.house.members import uses

SMALL = ("--number", "3", "--size", "1MiB", "--name", "run")
HOURS = ("--number", "2", "--size", "100GiB", "--part-size", "1024MiB")


def simulated(call: Call, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the plan of a command, and the report on the run that it simulated."""
    code, out, err = call("plan", "--simulate", "--format", "json", *words)
    assert code == 0, err
    planned = json.loads(out)
    code, out, _ = call("report", "--format", "json", planned["run_dir"])
    return planned, json.loads(out)


@uses("workload read")
def test_a_write_and_the_read_of_its_objects_are_simulated(call: Call, tmp_path: Path) -> None:
    words = (
        "plan",
        "--simulate",
        "write",
        *SMALL,
        "--run-dir",
        str(tmp_path),
        "--key-file",
        "keys.txt",
    )
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert f"{tmp_path / 'run'}: see sbench report" in out.splitlines()[-1]
    given = (
        "--key-file",
        "keys.txt",
        "--run-dir",
        str(tmp_path),
        "--name",
        "read",
        "--number",
        "3",
    )
    planned, report = simulated(call, "read", *given)
    assert (report["ok"], report["bytes"]) == (3, 3 << 20)
    assert planned["expected"]["bytes"] == report["bytes"]
    assert report["simulated"] == planned["model"] == "aws-lambda"


def test_the_account_and_a_file_decide_the_model(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[store]\nput_per_s = "none"\n')
    account = ("--quota", "2", "--memory", "512", "--arch", "x86_64")
    model = ("--model", str(tmp_path / "mine.toml"))
    planned, report = simulated(call, *model, *account, "write", *SMALL, "--run-dir", str(tmp_path))
    assert (report["simulated"], report["planned_concurrency"]) == ("mine", 2)
    assert (planned["model"], planned["concurrency"]) == ("mine", 2)
    assert report["bill"]["architecture"] == "x86_64"
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    given = header["provenance"]["model"]
    assert given["store"]["put_per_s"] is None
    assert (given["deployed"]["memory_mib"], given["deployed"]["quota"]) == (512, 2)


def test_on_one_machine_there_is_no_quota_and_no_bill(call: Call, tmp_path: Path) -> None:
    words = ("--model", "loopback", "write", *SMALL, "--number", "2000", "--run-dir", str(tmp_path))
    planned, report = simulated(call, *words)
    assert (planned["concurrency"], report["planned_concurrency"]) == (2000, 2000)
    assert "bill" not in report


@uses("workload mixed")
@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("plan needs a command", ("--simulate",)),
        ("there is no model 'nope'", ("--model", "nope", "write")),
        ("there is no model 'nope'", ("--simulate", "--model", "nope", "write")),
        ("cannot plan command 'wirte'", ("--simulate", "wirte")),
        ("a mixed is not simulated", ("--simulate", "mixed", "--operations", "3")),
        ("--rate is not simulated", ("--simulate", "write", "--rate", "5")),
        ("--ceiling is not simulated", ("--simulate", "write", "--ceiling")),
        ("--pickle is not simulated", ("--simulate", "write", "--pickle", "p")),
        ("2 of 2 functions would run longer than the 900 s", ("--simulate", "write", *HOURS)),
    ],
)
def test_jobs_that_cannot_be_simulated_are_one_line(
    call: Call, tmp_path: Path, says: str, words: tuple[str, ...]
) -> None:
    code, out, err = call("plan", *words)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[0]
    assert len(err.splitlines()) == 2
    assert not list(tmp_path.glob("**/run.json"))


def test_a_wrong_flag_of_the_command_leads_to_its_help(call: Call) -> None:
    _, _, err = call("plan", "--simulate", "write", "--number", "many")
    assert err.splitlines()[1] == "hint: sbench plan write --help"


def test_a_directory_with_a_run_is_not_changed(call: Call, tmp_path: Path) -> None:
    words = ("plan", "--simulate", "write", *SMALL, "--run-dir", str(tmp_path))
    assert call(*words)[0] == 0
    code, _, err = call(*words)
    assert code == 8
    assert "already holds a run" in err


@uses("feature history")
def test_no_history_is_made_of_it(call: Call, tmp_path: Path) -> None:
    call("plan", "--simulate", "write", *SMALL, "--run-dir", str(tmp_path))
    code, _, err = call(
        "history", "add", "--history", str(tmp_path / "kept"), str(tmp_path / "run")
    )
    assert (code, "run was simulated: its results are not measurements" in err) == (2, True), err
    assert not (tmp_path / "kept").exists()


def test_pages_say_so(call: Call, tmp_path: Path) -> None:
    call("plan", "--simulate", "write", *SMALL, "--run-dir", str(tmp_path))
    _, out, _ = call("report", "--format", "html", str(tmp_path / "run"))
    assert out.count("<figure") > 3
    assert "<title>write: run (simulated)" in out
    assert "SIMULATED (model aws-lambda)" in out
