"""A series keeps its answer: `ls` shows it shortly, `report` shows it again."""

import json
from html import escape
from pathlib import Path

import pytest

from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.features.answers.answer import ANSWER, Drawing, Mark, save_answer
from serverless_bench.features.compare.runs import CutOff, Interrupted, JobSeries
from serverless_bench.rundir.listing import as_argument
from tests.commands.command import Call, Sbench
from tests.data.runs import operation, outcome, record, saved
from tests.house.members import uses

QUICK = ("--executor", "inline", "--number", 1, "--size", "1KiB")


def check_kept(sbench: Sbench, name: str, command: str, shown: str, document: object) -> None:
    """Check the answer of a series against what its command printed."""
    again = sbench("report", name)
    assert again.code == 0, again.err
    assert again.out == shown
    assert sbench("report", f"sbench-runs/{name}").out == shown
    assert json.loads(sbench("report", name, "--format", "json").out) == document
    assert sbench("report", name, "--format", "markdown").out
    page = sbench("report", name, "--format", "html")
    assert page.code == 0, page.err
    (answer,) = {row["answer"] for row in json.loads(sbench("ls", "--format", "json").out)}
    for words in (escape(answer), *(escape(line) for line in shown.splitlines())):
        assert words in page.out
    drawn = sbench("plot", name)
    assert drawn.code == 0, drawn.err
    assert (sbench.directory / f"sbench-runs/{name}/plot.png").read_bytes()[:4] == b"\x89PNG"
    (row,) = json.loads(sbench("ls", "--format", "json").out)
    assert (row["name"], row["command"]) == (name, command)
    assert row["answer"] in sbench("ls").out


@uses("feature limit")
def test_a_limit_is_kept(sbench: Sbench) -> None:
    words = ("--p99", "10s", "--highest", 20, "--block", "0.3s", "--budget", "1.5s")
    found = sbench("limit", "write", *QUICK, *words, "--name", "l")
    assert found.code in {0, 10}, found.err
    shown = "".join(
        line for line in found.out.splitlines(keepends=True) if not line.startswith("rate ")
    )
    document = json.loads((sbench.directory / "sbench-runs/l" / ANSWER).read_text())["result"]
    assert document["over"] == "rate"
    check_kept(sbench, "l", "limit", shown, document)


@uses("feature ab")
def test_a_comparison_interleaved_is_kept(sbench: Sbench) -> None:
    for name, size in (("a", "1KiB"), ("b", "1KiB")):
        text = f'command = "write"\nexecutor = "inline"\nnumber = 1\nsize = "{size}"\n'
        (sbench.directory / f"{name}.toml").write_text(text)
    found = sbench("ab", "a.toml", "b.toml", "--name", "t", "--format", "json")
    assert found.code in {0, 9, 10}, found.err
    shown = sbench("report", "t").out
    assert "B against A" in shown
    check_kept(sbench, "t", "ab", shown, found.json)


def test_a_damaged_answer_hides_no_other(call: Call, tmp_path: Path) -> None:
    root = tmp_path / "sbench-runs"
    for name in ("bad", "good"):
        saved(root / name / "1", [outcome(record(0, [operation()]))])
    whole = '{"command":"limit","headline":"7/s","text":["seven"],"markdown":[],"result":{}}'
    (root / "good" / ANSWER).write_text(whole)
    (root / "bad" / ANSWER).write_text(whole[:-9])
    rows = {row["name"]: row for row in json.loads(call("ls", "--format", "json")[1])}
    assert rows["good"]["answer"] == "7/s"
    assert "answer" not in rows["bad"]
    assert call("report", "good")[:2] == (0, "seven\n")
    # It is from before answers had drawings.
    code, _, err = call("plot", "good")
    assert code == 8
    assert "nothing to draw" in err
    code, _, err = call("report", "bad")
    assert code == 8
    assert "result.json is damaged" in err


def test_a_picture_goes_to_the_series_whose_answer_it_shows(call: Call, tmp_path: Path) -> None:
    drawing = Drawing(title="t", says="", at="", value="", marks=(Mark(at="a", value=1.0),))
    (tmp_path / "sbench-runs" / "x").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    save_answer(
        tmp_path / "x",
        command="limit",
        headline="7/s",
        text=("seven",),
        markdown=(),
        result={},
        drawings=(drawing,),
    )
    code, out, _ = call("plot", "x")
    assert (code, out) == (0, "plot: x/plot.png\n")
    assert (tmp_path / "x" / "plot.png").exists()
    assert not [*(tmp_path / "sbench-runs" / "x").iterdir()]


@pytest.mark.parametrize("is_of_a_run", [True, False])
def test_an_interrupted_series_says_what_is_saved(tmp_path: Path, *, is_of_a_run: bool) -> None:
    root = tmp_path / "series"
    for name in "ab":
        saved(root / name / "1", [outcome(record(0, [operation()]))])
    reason = CutOff(root / "b" / "1", INTERRUPTED) if is_of_a_run else KeyboardInterrupt()
    with (
        pytest.raises(Interrupted, match=f"interrupted; 2 runs are saved in {root}") as raised,
        JobSeries(root=root).keep_store(needed=False),
    ):
        raise reason
    assert raised.value.exit_code == INTERRUPTED
    assert raised.value.hint == f"sbench ls {as_argument(root)}"
