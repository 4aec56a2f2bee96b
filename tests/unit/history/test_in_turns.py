"""Old and new in turns: the commands are scripts that put down runs made by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from serverless_bench.job.spec import JobSpec
from tests.commands.command import Call
from tests.data.runs import job
from tests.unit.history.test_command import make_run

NOISE = (1.0, 1.02, 0.99, 1.01)
FLAGS = ("--blocks", "4", "--keep", "--format", "json")


def command(name: str, seconds: Sequence[float], of: JobSpec | None = None) -> str:
    """Return a command that makes a run after the other, each when it is its turn."""
    for turn, one in enumerate(seconds):
        make_run(f"{name}/{turn}", one, of)
    script = Path(name) / "next.sh"
    script.write_text(
        f'cd "$(dirname "$0")" && mkdir -p "$SBENCH_RUN_DIR" && set -- [0-9]* &&'
        f' test "$1" != "[0-9]*" && mv "$1" "$SBENCH_RUN_DIR/{name}-$1"\n'
    )
    return f"/bin/sh {script}"


@pytest.mark.parametrize(
    ("times", "code", "verdict"),
    [(1.0, 0, "passed"), (1.15, 9, "regressed"), (0.7, 0, "passed")],
)
def test_what_makes_a_block_slow_is_no_loss_and_warm_ups_do_not_count(
    call: Call, times: float, code: int, verdict: str
) -> None:
    # Blocks differ by a factor of three.
    blocks = (50.0, 1.0, 2.0, 3.0, 1.5)
    old = command("old", blocks)
    new = command("new", (0.1, *(b * times * n for b, n in zip(blocks[1:], NOISE, strict=True))))
    ended, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert ended == code, err
    found = json.loads(out)
    assert (found["verdict"], found["in_turns"]) == (verdict, True)
    assert found["key"].startswith("write-wire-local-")
    rate = found["figures"][0]
    assert rate["ratio"] == pytest.approx(1 / times, rel=0.02)
    assert rate["correlation"] is None
    assert [line.split(":")[0] for line in err.splitlines()[::2]] == [
        "warm-up 1 of 1",
        *(f"block {number} of 4" for number in (1, 2, 3, 4)),
    ]
    # Both take turns: no side runs twice in a block.
    labels = [line.split(": ")[1].split()[0] for line in err.splitlines()]
    assert all({*labels[at : at + 2]} == {"old", "new"} for at in range(0, 10, 2))


def test_ab_takes_commands_as_well_as_files(call: Call) -> None:
    fast, slow = command("fast", (9.0, *NOISE)), command("slow", [9.0, *(2 * n for n in NOISE)])
    flags = ("--blocks", "4", "--keep", "--name", "x", "--format", "json")
    code, out, err = call("ab", fast, slow, *flags)
    assert code == 9, err
    found = json.loads(out)
    assert found["comparisons"][0]["ratio"] == pytest.approx(0.5, rel=0.05)
    assert [side["runs"] for side in found["sides"]] == [4, 4]
    assert json.loads(call("compare", "x/a", "x/b", "--format", "json")[1]) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sbench 'write", "is no command: No closing quotation"),
        ("./no such", "cannot start ./no: No such file"),
        ("no.toml", "cannot read the job file"),
    ],
)
def test_what_ab_cannot_run_is_refused(call: Call, text: str, words: str) -> None:
    code, out, err = call("ab", text, text)
    assert (code, out) == (2, "")
    assert words in err


def test_both_have_to_do_the_same_work(call: Call) -> None:
    old = command("old", [1.0] * 5)
    new = command("new", [1.0] * 5, job(number=1, size=5000))
    code, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert (code, out) == (2, "")
    assert "not do the same work: size is 1000 or 5000" in err
    assert err.count("warm-up 1 of 1") == 2


def test_a_command_that_fails_ends_the_check(call: Call) -> None:
    old, new = command("old", [1.0] * 5), command("new", [1.0] * 2)
    code, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert (code, out) == (2, "")
    assert "/bin/sh new/next.sh ended with exit code 1: it said nothing" in err


def test_a_command_that_makes_two_runs_is_refused(call: Call) -> None:
    old = command("old", [1.0] * 5)
    call_twice = f"/bin/sh -c '{old}; {old}'"
    code, out, err = call("history", "check", "--old", call_twice, "--new", old, *FLAGS)
    assert (code, out) == (2, "")
    assert "made 2 runs in sbench-runs/" in err
