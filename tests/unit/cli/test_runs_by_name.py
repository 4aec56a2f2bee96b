"""Runs have names: `ls` lists them, and all commands that use a run accept one."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from serverless_bench.driver.origin import sealed
from serverless_bench.job.operations import OperationKind
from tests.commands.command import Call
from tests.commands.terminal import on_a_terminal
from tests.data import runs
from tests.house.members import uses

NOW = 1_800_000_000 * runs.S


def save(
    path: Path,
    *,
    age_s: int,
    workload: str = "write",
    lost: bool = False,
    ledger: tuple[str, ...] = (),
) -> None:
    kind = OperationKind.GET if workload == "read" else OperationKind.PUT
    done = runs.outcome(runs.record(0, [runs.operation(size=5_000_000, kind=kind)]))
    outcomes = [done, runs.outcome(runs.lost(1))] if lost else [done]
    job = runs.job(number=len(outcomes), workload=workload)
    runs.saved(path, outcomes, of=job, seal=sealed, ledger=ledger, created_ns=NOW - age_s * runs.S)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A parent directory with three runs, a series, and a folder that is not a run."""
    root = tmp_path / "sbench-runs"
    save(root / "oldest", age_s=300)
    save(root / "latest", age_s=100, workload="read")
    save(root / "middle", age_s=200, lost=True)
    for number, label in enumerate("ab"):
        save(root / "series" / label / "1", age_s=150 + number)
    (root / "notes").mkdir()
    records = root / "oldest" / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    return root


def test_runs_are_listed_by_age(call: Call, saved: Path) -> None:
    code, out, err = call("ls")
    assert (code, err) == (0, "")
    assert [line.split("  ")[0].strip() for line in out.splitlines()] == [
        *("name", "latest", "series", "middle", "oldest"),
    ]
    _, latest, series, middle, oldest = (" ".join(line.split()) for line in out.splitlines())
    assert latest == "latest 2027-01-15 07:58 read 1 of 1 4.8 MiB 5.0 MB/s"
    assert series == "series 2027-01-15 07:57 series 2 runs - -"
    assert "1 of 2" in middle
    assert oldest.endswith("unfinished")
    assert saved.is_dir()


def test_a_copy_is_as_old_as_the_run(call: Call, saved: Path) -> None:
    before = call("ls")[1]
    for number, header in enumerate(sorted(saved.rglob("run.json"))):
        os.utime(header, ns=(NOW, NOW + number * runs.S))
    os.utime(saved / "series", ns=(NOW, NOW + 1000 * runs.S))
    assert call("ls")[1] == before
    assert call("report")[2].startswith("the latest run: sbench-runs/latest\n")


def test_a_run_that_is_imported_is_the_latest(call: Call, saved: Path) -> None:
    header = json.loads((saved / "oldest" / "run.json").read_text())
    header["job"]["executor"] = "imported"
    runs.forge(saved / "oldest", header)
    os.utime(saved / "oldest" / "run.json", ns=(NOW, NOW))
    assert call("ls")[1].splitlines()[1].startswith("oldest ")


def test_the_latest_run_with_objects_is_cleaned_once(call: Call, saved: Path) -> None:
    for name, age_s in (("first", 260), ("second", 250)):
        save(saved / name, age_s=age_s, ledger=(f"sbench/{age_s:032x}.7",))
    assert "1 object of sbench-runs/second: stdin is not" in call("clean")[2]
    with (saved / "second" / "records.jsonl").open("ab") as file:
        file.write(b'{"cleaning": {"at_ns": 1}}\n'.replace(b'": {', b'":{'))
    assert "1 object of sbench-runs/first: stdin is not" in call("clean")[2]


def test_a_series_has_runs_of_its_own(call: Call, saved: Path) -> None:
    out = call("ls", "series")[1]
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["series/a/1", "series/b/1"]
    # Commands accept each of these names.
    assert call("report", "series/b/1", "--format", "json")[0] == 0
    assert (saved / "series/b/1").is_dir()


@pytest.mark.usefixtures("saved")
def test_a_list_can_be_short_and_for_programs(call: Call) -> None:
    code, out, _ = call("ls", "--limit", "2", "--format", "json")
    assert code == 0
    latest, series = json.loads(out)
    lines = call("ls", "--limit", "2", "--format", "jsonl")[1].splitlines()
    assert [*map(json.loads, lines)] == [latest, series]
    assert (latest["name"], latest["command"], latest["ok"]) == ("latest", "read", 1)
    assert (latest["bytes"], latest["ended"]) == (5_000_000, True)
    assert (series["name"], series["runs"]) == ("series", 2)
    assert call("ls", "--limit", "2")[1].endswith(
        "2 older runs are not shown; list all with --limit 0\n"
    )
    assert len(call("ls", "--limit", "0")[1].splitlines()) == 5


def test_a_kept_row_is_of_the_files_that_are_there(call: Call, saved: Path) -> None:
    before = call("ls")
    assert call("ls") == before
    shutil.rmtree(saved / "latest")
    save(saved / "latest", age_s=100, lost=True)
    assert "1 of 2" in call("ls")[1].splitlines()[1]
    (state,) = Path(os.environ["XDG_STATE_HOME"]).rglob("ls.json")
    state.write_text("{")
    assert "1 of 2" in call("ls")[1].splitlines()[1]


def test_a_narrow_terminal_shows_fewer_columns(saved: Path) -> None:
    for columns, shown in ((120, 6), (50, 4)):
        lines = on_a_terminal(saved.parent, "ls", columns=columns)[1].splitlines()
        assert len(lines[0].split("  ")) >= 3
        assert len(re.split(r"  +", lines[0].replace("when (UTC)", "when"))) == shown
        assert max(map(len, lines)) <= columns


def test_a_damaged_run_is_listed_as_such(call: Call, saved: Path) -> None:
    (saved / "middle" / "run.json").write_text("{")
    out = call("ls")[1]
    (line,) = (line for line in out.splitlines() if line.startswith("middle"))
    assert "is damaged" in line
    assert len(out.splitlines()) == 5


def test_a_missing_run_is_reported(call: Call) -> None:
    for words in (("ls",), ("report",), ("clean", "--yes")):
        code, out, err = call(*words)
        assert (code, out) == (8, "")
        assert err.startswith(
            "sbench: there is no run in sbench-runs\nhint: sbench write makes one"
        )


COMMANDS = [
    ("report", "--format", "json"),
    pytest.param(("check", "--format", "json"), marks=uses("feature check")),
    pytest.param(("export", "--format", "csv"), marks=uses("feature formats")),
    ("resume", "--format", "json"),
    pytest.param(("plot", "--output", "picture.svg"), marks=uses("feature plot"), id="plot"),
    ("clean",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_name_is_as_good_as_a_directory(
    call: Call, saved: Path, command: tuple[str, ...]
) -> None:
    name, *flags = command
    by_name = call(name, "latest", *flags)
    assert by_name[0] == 0
    assert call(name, "sbench-runs/latest", *flags) == by_name
    assert call(name, str(saved / "latest"), *flags)[0] == 0
    (saved.parent / "sbench-runs").rename(saved.parent / "elsewhere")
    assert call(name, "latest", *flags)[0] == 8
    assert call(name, "latest", "--run-dir", "elsewhere", *flags)[0] == 0


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize("command", COMMANDS[:-1], ids=lambda command: command[0])
def test_without_a_name_the_latest_run_is_used(call: Call, command: tuple[str, ...]) -> None:
    name, *flags = command
    code, out, err = call(name, *flags)
    named = call(name, "latest", *flags)
    assert (code, out) == named[:2]
    assert err == "the latest run: sbench-runs/latest\n" + named[2]


@pytest.mark.usefixtures("saved")
def test_a_similar_name_is_distinguished_from_an_unknown_one(call: Call) -> None:
    code, _, err = call("report", "latets")
    assert code == 8
    assert "there is no run 'latets': neither a directory nor a name in sbench-runs" in err
    assert "hint: did you mean latest?" in err
    assert "hint: sbench ls" in call("report", "qqqq")[2]
    assert call("report", "series")[2] == (
        "sbench: series is a series of runs, not a run\nhint: sbench ls series lists its runs\n"
    )


def test_cleaning_an_unnamed_run_has_to_be_wanted(call: Call, saved: Path) -> None:
    nothing = (0, "no run in sbench-runs has objects to delete\n", "")
    assert call("clean", "--yes") == call("clean") == nothing
    assert call("clean", "latest")[:2] == (
        0,
        "sbench-runs/latest wrote no objects: nothing to delete\n",
    )
    save(saved / "wrote", age_s=500, ledger=("sbench/" + "0" * 32 + ".7",))
    code, out, err = call("clean")
    assert (code, out) == (2, "")
    assert (
        "cannot ask whether to delete 1 object of sbench-runs/wrote: stdin is not a terminal" in err
    )
    assert "hint: sbench clean RUN, or --yes" in err


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("n", ["cancelled"]),
        (
            "y",
            ["deleting the objects of sbench-runs/wrote"],
        ),
    ],
)
def test_at_a_terminal_it_asks(saved: Path, answer: str, says: list[str]) -> None:
    save(saved / "wrote", age_s=500, ledger=("sbench/" + "0" * 32 + ".7",))
    code, text = on_a_terminal(saved.parent, "clean", typed=f"{answer}\n")
    assert (code == 0) == (answer == "n")
    assert "Delete 1 object of sbench-runs/wrote? [y/N]" in text
    assert [words for words in says if words not in text] == []


@pytest.mark.parametrize(
    "place", ["sbench-runs/w", "sbench-runs/stages/01-fill", "elsewhere/q", "my runs/q"]
)
def test_a_report_names_a_command_for_its_run(call: Call, tmp_path: Path, place: str) -> None:
    save(tmp_path / place, age_s=1)
    code, out, _ = call("report", place)
    assert code == 0
    more = out.splitlines()[-1].partition("more: ")[2]
    _, report, run, full = shlex.split(more.split(";")[0])
    assert (report, full) == ("report", "--full")
    assert run in {"w", "stages/01-fill", place}
    code, full_report, _ = call(report, run, full)
    assert code == 0
    assert "bytes moved" in full_report
