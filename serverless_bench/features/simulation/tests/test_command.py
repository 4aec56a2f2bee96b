"""``sbench plan --simulate`` as users type it."""

import json
from pathlib import Path

import pytest

from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run
from tests.commands.command import Call
from tests.house.members import uses

SMALL = ("--number", "3", "--size", "1MiB", "--name", "run")
HOURS = ("--number", "2", "--size", "100GiB", "--part-size", "1024MiB")
PAGE = ("--format", "html")


@uses("workload read")
def test_a_write_and_the_read_of_its_objects_are_simulated(call: Call, tmp_path: Path) -> None:
    words = ("plan", "--simulate", "write", *SMALL, "--run-dir", tmp_path, "--key-file", "keys.txt")
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"run directory: {tmp_path / 'run'}"
    assert "write: SIMULATED (model aws-lambda)" in out
    given = ("--key-file", "keys.txt", "--run-dir", tmp_path, "--name", "read", "--number", "3")
    code, out, _ = call("plan", "--simulate", "--format", "json", "read", *given)
    report = json.loads(out)
    assert (code, report["ok"], report["bytes"]) == (0, 3, 3 << 20)
    assert report["simulated"] == "aws-lambda"


def test_the_account_and_a_file_decide_the_model(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[store]\nput_per_s = "none"\n')
    account = ("--quota", "2", "--memory", "512", "--arch", "x86_64")
    model = ("--model", tmp_path / "mine.toml")
    words = (*SMALL, "--run-dir", tmp_path, "--format", "json")
    code, out, _ = call("plan", "--simulate", *model, *account, "write", *words)
    report = json.loads(out)
    assert (code, report["simulated"], report["planned_concurrency"]) == (0, "mine", 2)
    assert report["bill"]["architecture"] == "x86_64"
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    given = header["provenance"]["model"]
    assert given["store"]["put_per_s"] is None
    assert (given["deployed"]["memory_mib"], given["deployed"]["quota"]) == (512, 2)


def test_on_one_machine_there_is_no_quota_and_no_bill(call: Call, tmp_path: Path) -> None:
    words = (*SMALL, "--run-dir", tmp_path, "--format", "json")
    code, out, _ = call("plan", "--simulate", "--model", "loopback", "write", *words)
    report = json.loads(out)
    assert (code, report["planned_concurrency"], report.get("bill")) == (0, 3, None)


@pytest.mark.on_change("serverless_bench/features/simulation")
def test_several_runs_have_a_range_that_another_one_lies_in(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "loopback"\n[store]\nput_per_s = 3.0\n')
    several = ("plan", "--simulate", "--runs", "5", "--model", tmp_path / "mine.toml")
    words = ("write", *SMALL, "--objects", "4", "--seed", "7", "--run-dir", tmp_path)
    code, out, err = call(*several, *words, "--format", "json")
    found = json.loads(out)
    assert (code, found["runs"], found["first_seed"], found["between"]) == (0, 5, 7, 4 / 6)
    assert err == f"run directories: {tmp_path / 'run' / '1'} to 5\n"
    summaries = [summarize(load_run(tmp_path / "run" / str(n))) for n in range(1, 6)]
    spans = sorted(one.elapsed_s or 0.0 for one in summaries)
    assert len(set(spans)) == 5
    span = {"low": spans[0], "median": spans[2], "high": spans[4]}
    assert found["figures"]["elapsed_s"] == span
    code, _, err = call(*several, *words)
    assert code == 8
    assert f"{tmp_path / 'run'} exists already" in err
    code, out, _ = call(*several, *words, "--name", "again")
    assert code == 0
    assert "SIMULATED (model mine), seeds from 7 on" in out
    assert "67% of further runs lie between the lowest and the highest" in out


def test_functions_that_gave_up_make_the_run_incomplete(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[store]\nput_per_s = 0.01\n")
    model = ("--model", tmp_path / "mine.toml")
    words = (*SMALL, "--run-dir", tmp_path, "--retries", "0")
    code, out, _ = call("plan", "--simulate", *model, "write", *words)
    assert code == 6
    assert "3 x throttled" in out


@uses("workload mixed")
@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("plan needs a command", ("--simulate",)),
        ("--model needs --simulate", ("--model", "loopback", "write")),
        ("--runs needs --simulate", ("--runs", "2", "write")),
        ("--runs creates objects", ("--simulate", "--runs", "2", "write", "--key-file", "k")),
        ("no report as html", ("--simulate", "--runs", "2", "write", "--format", "html")),
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
    words = ("plan", "--simulate", "write", *SMALL, "--run-dir", tmp_path)
    assert call(*words)[0] == 0
    code, _, err = call(*words)
    assert code == 8
    assert "already holds a run" in err


@uses("feature history")
def test_no_history_is_made_of_it(call: Call, tmp_path: Path) -> None:
    call("plan", "--simulate", "write", *SMALL, "--run-dir", tmp_path)
    code, _, err = call(
        "history", "add", "--history", str(tmp_path / "kept"), str(tmp_path / "run")
    )
    assert (code, "run was simulated: its results are not measurements" in err) == (2, True), err
    assert not (tmp_path / "kept").exists()


@pytest.mark.on_change("serverless_bench/features/simulation")
def test_pages_say_so(call: Call, tmp_path: Path) -> None:
    _, made, _ = call("plan", "--simulate", "write", *SMALL, "--run-dir", tmp_path, *PAGE)
    _, out, _ = call("report", *PAGE, str(tmp_path / "run"))
    assert made.count("<figure") == out.count("<figure") > 3
    assert "<title>write: run (simulated)" in out
    assert "SIMULATED (model aws-lambda)" in out
