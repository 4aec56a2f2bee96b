"""Other objects in place of files in a run directory: links, FIFOs, directories, second names."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.data.runs import forge
from tests.fuzz.seeds import RECORDED
from tests.fuzz.test_run_directories import KEYS, MODULES, SAFE, patient
from tests.fuzz.watched import Ended, Nursery, nursery

TEXT: Final = b"export PATH\nalias ll='ls -l'"
"""Text of a start-up file with an unfinished last line."""
PLACES: Final = ("run.json", "records.jsonl", "ledger.txt", "keys.txt", "plot.png")


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    with nursery(*MODULES) as found:
        yield found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".profile"
    path.parent.mkdir()
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with lost functions, which can be resumed and cleaned."""
    path = tmp_path / "here" / "run"
    shutil.copytree(RECORDED / "write", path)
    patient(path / "run.json")
    records = path / "records.jsonl"
    records.write_bytes(records.read_bytes().splitlines(keepends=True)[0])
    return path


def _link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def _dangling(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("new"))


def _device(path: Path, victim: Path) -> None:
    del victim
    path.symlink_to("/dev/zero")


def _fifo(path: Path, victim: Path) -> None:
    del victim
    os.mkfifo(path)


def _directory(path: Path, victim: Path) -> None:
    del victim
    path.mkdir()


def _second_name(path: Path, victim: Path) -> None:
    path.hardlink_to(victim)


KINDS: Final[dict[str, Callable[[Path, Path], None]]] = {
    "link": _link,
    "dangling link": _dangling,
    "device": _device,
    "fifo": _fifo,
    "directory": _directory,
    "second name": _second_name,
}


def ask(sbench: Nursery, run: Path, *arguments: str | Path) -> Ended:
    # The target of its requests is not tested here.
    trust = ("--trust",) if arguments[0] in {"resume", "clean"} else ()
    ended = sbench(run.parent, *arguments, *trust, environment=KEYS)
    ended.check(*SAFE, 5)
    return ended


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_no_outside_file_is_written_and_no_command_hangs(
    sbench: Nursery, run: Path, victim: Path, place: str, kind: str
) -> None:
    (run / place).unlink(missing_ok=True)
    KINDS[kind](run / place, victim)
    before = sorted(victim.parent.iterdir())
    commands = ("plot",) if place == "plot.png" else ("report", "resume", "clean")
    for command in commands:
        ask(sbench, run, command, "run")
        assert victim.read_bytes() == TEXT
        assert sorted(victim.parent.iterdir()) == before


@pytest.mark.parametrize("command", ["resume", "clean"])
def test_a_ledger_elsewhere_is_named(
    sbench: Nursery, run: Path, victim: Path, command: str
) -> None:
    (run / "ledger.txt").unlink()
    (run / "ledger.txt").symlink_to(victim)
    ended = ask(sbench, run, command, "run")
    assert ended.code == 8
    assert "sbench: run/ledger.txt is a symbolic link, not a regular file" in ended.err


def test_lines_of_somebodys_choice_get_into_no_file(
    sbench: Nursery, run: Path, victim: Path
) -> None:
    """The ledger is a start-up file, and the prefix of each key is a command."""
    (run / "ledger.txt").unlink()
    (run / "ledger.txt").symlink_to(victim)
    header = json.loads((run / "run.json").read_bytes())
    header["job"]["target"]["prefix"] = "\ntouch owned #"
    (run / "run.json").write_text(json.dumps(header))
    ended = ask(sbench, run, "resume", "run")
    assert ended.code == 8
    assert "`job.target.prefix` has characters that cannot be printed" in ended.err
    assert victim.read_bytes() == TEXT


def test_a_picture_overwrites_no_other_file(sbench: Nursery, run: Path, victim: Path) -> None:
    (run / "plot.png").symlink_to(victim)
    ended = ask(sbench, run, "plot", "run")
    assert ended.code == 8
    assert "run/plot.png is a symbolic link" in ended.err
    assert victim.read_bytes() == TEXT


def test_an_export_follows_no_link(sbench: Nursery, run: Path, victim: Path) -> None:
    (run.parent / "out.csv").symlink_to(victim)
    ended = ask(sbench, run, "export", "run", "--format", "csv", "--output", "out.csv")
    assert ended.code == 2
    assert victim.read_bytes() == TEXT


def test_a_picture_replaces_a_picture(sbench: Nursery, run: Path) -> None:
    (run / "plot.png").write_bytes(b"old")
    (run / "kept.png").hardlink_to(run / "plot.png")
    assert ask(sbench, run, "plot", "run").code == 0
    assert (run / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "kept.png").read_bytes() == b"old"
    assert not [*run.glob(".sbench-*")]


def test_a_run_directory_may_be_a_link_that_the_user_names(sbench: Nursery, run: Path) -> None:
    (run.parent / "mine").symlink_to(run)
    assert ask(sbench, run, "report", "mine").code == 6


def test_a_false_number_of_functions_uses_no_memory(sbench: Nursery, run: Path) -> None:
    header = json.loads((run / "run.json").read_bytes())
    for count in (10**12, 10**8, 500_001):
        header["job"]["number"] = count
        (run / "run.json").write_text(json.dumps(header))
        ended = ask(sbench, run, "report", "run")
        assert ended.code == 8
        assert "run.json: `job.number` must be at most 500,000" in ended.err
    header["job"]["number"] = 500_000
    forge(run, header)
    assert ask(sbench, run, "report", "run").code == 6


@pytest.mark.parametrize("place", PLACES[:-1])
def test_a_hole_in_a_file_is_not_read_to_its_end(sbench: Nursery, run: Path, place: str) -> None:
    with (run / place).open("ab") as file:
        file.truncate(1 << 40)
    ask(sbench, run, "report", "run")
    ask(sbench, run, "clean", "run")


def test_an_objects_count_that_the_ledger_does_not_have_is_refused(
    sbench: Nursery, run: Path
) -> None:
    header = json.loads((run / "run.json").read_bytes())
    header["job"]["objects"] = 1_000_000
    forge(run, header)
    size = (run / "ledger.txt").stat().st_size
    ended = ask(sbench, run, "resume", "run")
    assert ended.code == 8
    assert "run.json asks for more than" in ended.err
    assert (run / "ledger.txt").stat().st_size == size


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        ("custom", "`job.load.code` must be null"),
        # Its loads have no code: it is ignored, and the seal is of another header.
        ("write", "run/run.json is not as its driver wrote it"),
    ],
)
def test_code_in_a_run_directory_is_not_taken(
    workload: str, problem: str, sbench: Nursery, run: Path
) -> None:
    header = json.loads((run / "run.json").read_bytes())
    header["job"]["workload"] = workload
    header["job"]["load"]["code"] = "3.11:gASVEQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOULg=="
    (run / "run.json").write_text(json.dumps(header))
    ended = ask(sbench, run, "resume", "run")
    assert ended.code == 8
    assert problem in ended.err


def test_a_line_that_is_skipped_is_named_with_its_field(sbench: Nursery, run: Path) -> None:
    line = json.loads((run / "records.jsonl").read_bytes())
    line["record"]["operations"]["size"][0] = 1e30
    (run / "records.jsonl").write_text(json.dumps(line) + "\n")
    ended = ask(sbench, run, "report", "run")
    assert "records.jsonl, line 1 is skipped: `record.operations.size[0]`" in ended.err
