"""Old and new in turns: the commands are scripts that write hand-made runs."""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from serverless_bench.features.compare.runs import interleaved
from serverless_bench.features.history.tests.test_command import make_run
from serverless_bench.job.spec import JobSpec
from tests.commands.command import Call
from tests.data.runs import job

NOISE = (1.0, 1.02, 0.99, 1.01, 1.0, 0.99)
FLAGS = ("--blocks", "6", "--keep", "--format", "json")


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
def test_slow_blocks_are_no_loss_and_warm_ups_do_not_count(
    call: Call, times: float, code: int, verdict: str
) -> None:
    # Blocks differ by a factor of three.
    blocks = (50.0, 1.0, 2.0, 3.0, 1.5, 1.2, 2.5)
    old = command("old", blocks)
    new = command("new", (0.1, *(b * times * n for b, n in zip(blocks[1:], NOISE, strict=True))))
    ended, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert ended == code, err
    found = json.loads(out)
    assert (found["verdict"], found["interleaved"]) == (verdict, True)
    assert found["key"].startswith("write-wire-local-")
    rate = found["figures"][0]
    assert rate["ratio"] == pytest.approx(1 / times, rel=0.02)
    assert rate["correlation"] is None
    assert [line.split(":")[0] for line in err.splitlines()[::2]] == [
        "warm-up 1 of 1",
        *(f"block {number} of 6" for number in range(1, 7)),
    ]
    # The sides alternate: no side runs twice in a block.
    labels = [line.split(": ")[1].split()[0] for line in err.splitlines()]
    assert all({*labels[at : at + 2]} == {"old", "new"} for at in range(0, 14, 2))


def test_ab_takes_commands_as_well_as_files(call: Call) -> None:
    fast, slow = command("fast", (9.0, *NOISE)), command("slow", [9.0, *(2 * n for n in NOISE)])
    flags = ("--blocks", "6", "--keep", "--name", "x", "--format", "json")
    code, out, err = call("ab", fast, slow, *flags)
    assert code == 9, err
    found = json.loads(out)
    assert found["comparisons"][0]["ratio"] == pytest.approx(0.5, rel=0.05)
    assert [side["runs"] for side in found["sides"]] == [6, 6]
    assert json.loads(call("compare", "x/a", "x/b", "--format", "json")[1]) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sbench 'write", "is not a command: No closing quotation"),
        ("./no such", "cannot start ./no: No such file"),
        ("no.toml", "cannot read the job file"),
    ],
)
def test_commands_that_ab_cannot_run_are_refused(call: Call, text: str, words: str) -> None:
    code, out, err = call("ab", text, text)
    assert (code, out) == (2, "")
    assert words in err


def test_both_have_to_do_the_same_work(call: Call) -> None:
    old = command("old", [1.0] * 7)
    new = command("new", [1.0] * 7, job(number=1, size=5000))
    code, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert (code, out) == (2, "")
    assert "did different work: size is 1000 or 5000" in err
    assert err.count("warm-up 1 of 1") == 2


def test_a_command_that_fails_ends_the_check(call: Call) -> None:
    old, new = command("old", [1.0] * 7), command("new", [1.0] * 2)
    code, out, err = call("history", "check", "--old", old, "--new", new, *FLAGS)
    assert (code, out) == (2, "")
    assert "/bin/sh new/next.sh ended with exit code 1: no error message" in err


def test_a_command_that_makes_two_runs_is_refused(call: Call) -> None:
    old = command("old", [1.0] * 7)
    call_twice = f"/bin/sh -c '{old}; {old}'"
    code, out, err = call("history", "check", "--old", call_twice, "--new", old, *FLAGS)
    assert (code, out) == (2, "")
    assert "created 2 runs in sbench-runs/" in err


@pytest.mark.parametrize("sides", [2, 3, 5])
@pytest.mark.parametrize("rounds", [6, 7])
def test_each_side_comes_before_each_other_in_half_of_the_blocks(sides: int, rounds: int) -> None:
    """With seed 0, six blocks were AB four times and BA twice (finding 7)."""
    for seed in range(20):
        turns = [*interleaved(range(sides), rounds, seed)]
        order = [[item for number, item in turns if number == n + 1] for n in range(rounds)]
        assert all(sorted(block) == [*range(sides)] for block in order)
        for a, b in combinations(range(sides), 2):
            first = sum(block.index(a) < block.index(b) for block in order)
            assert abs(2 * first - rounds) <= rounds % 2
