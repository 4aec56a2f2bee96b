"""Every table fits a terminal of 80 columns, and one of 60."""

import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final

import numpy as np
import orjson
import pytest

from serverless_bench.cli.main import COMMANDS
from tests.commands.command import Call
from tests.data import runs
from tests.house.members import RIGS, uses

TESTS: Final = Path(__file__).parents[2]
RECORDED: Final = sorted((TESTS / "recorded").iterdir())
STUDIES: Final = sorted(TESTS.parent.glob("serverless_bench/features/studies/results/*.json"))


@pytest.fixture(params=[80, 60], autouse=True)
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal of this many columns."""
    number: int = request.param
    monkeypatch.setenv("COLUMNS", str(number))
    monkeypatch.setenv("NO_COLOR", "1")
    return number


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command with standard output on a terminal."""

    def run(*words: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out := Terminal())
            code, _, err = call(*words)
        return code, out.getvalue(), err

    return run


def too_long(text: str, columns: int) -> Iterator[str]:
    """Yield the lines that do not fit; names that cannot be broken are longer at times."""
    for line in text.splitlines():
        if len(line) > columns and max(map(len, line.split())) < columns // 2:
            yield line


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_reports_and_checks(on_terminal: Call, columns: int, path: Path) -> None:
    checks = [("check",)] if "check" in COMMANDS else []
    for words in (("report",), ("report", "--full"), *checks):
        code, out, err = on_terminal(words[0], str(path), *words[1:])
        assert out, err
        table = "\n".join(out.splitlines()[: -1 if words == ("report",) else None])
        assert list(too_long(table, columns)) == [], code
        if words == ("report",) and columns == 80:
            assert len(f"{err}{out}".splitlines()) <= 12


@uses(*RIGS, "feature history", "feature studies")
def test_lists_comparisons_and_plans(on_terminal: Call, columns: int, tmp_path: Path) -> None:
    one, other = (f"with-a-name-of-some-length/{side}" for side in "ab")
    for number, name in enumerate(f"{side}/{run}" for side in (one, other) for run in "12"):
        made = (
            "--run-dir",
            str((tmp_path / "sbench-runs" / name).parent),
            "--name",
            name[-1],
            "--seed",
            str(number),
        )
        assert on_terminal("plan", "--simulate", "write", "--number", "20", *made)[0] == 0
    for words in (
        ("ls", "with-a-name-of-some-length"),
        ("ls", "--run-dir", str(TESTS / "recorded")),
        ("compare", f"sbench-runs/{one}", f"sbench-runs/{other}"),
        ("history", "add", str(TESTS / "recorded" / "write")),
        ("history", "ls"),
        ("history", "check", str(TESTS / "recorded" / "write")),
        ("plan", "write", "--number", "100"),
        ("plan", "--simulate", "write", "--number", "100"),
        ("examples",),
        ("doctor",),
        ("study", "ls"),
    ):
        code, out, err = on_terminal(*words)
        assert out, (words, err)
        assert list(too_long(out, columns)) == [], (words, code)
    (key,) = {path.name for path in (tmp_path / ".sbench-history").iterdir()}
    assert list(too_long(on_terminal("history", "ls", key)[1], columns)) == []


@uses("feature studies")
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_studies(on_terminal: Call, columns: int, path: Path) -> None:
    from docs.experiment_figures import from_data
    from serverless_bench.features.studies.loading import load_study
    from serverless_bench.features.studies.report import make_report, show

    for words in (("show", path.stem), ("show", path.stem, "--reference")):
        assert list(too_long(on_terminal("study", *words)[1], columns)) == []
    plan, observed = from_data(load_study(path.stem), orjson.loads(path.read_bytes()))
    show(make_report(plan, observed), out := Terminal(), "text")
    assert list(too_long(out.getvalue(), columns)) == []


@uses("feature limit", "feature scale", "feature why")
def test_searches_and_fits(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from serverless_bench.features.limit.result import lines as limit_lines
    from serverless_bench.features.limit.tests.test_result import made as made_limit
    from serverless_bench.features.scale import fits
    from serverless_bench.features.scale.measure import ScaleFit
    from serverless_bench.features.scale.scaling import fit_scaling
    from serverless_bench.features.why.cause import Cause
    from serverless_bench.features.why.interventions import Interventions
    from serverless_bench.features.why.result import Why
    from serverless_bench.features.why.result import lines as why_lines
    from serverless_bench.features.why.tests.test_why_statistics import rows as why_rows

    tables = [line for line in limit_lines(made_limit(), "text", columns) if "  " in line]
    run = runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))])
    answer = Why(run=run, plan=Interventions(changes=("thread",), block_s=1.0))
    changes = np.array(["", "thread", ""])
    vars(answer).update(rows=why_rows({}), rates=np.ones((3, 1)), changes=changes, cause=Cause())
    tables += [line for line in why_lines(answer, "text", columns) if "  " in line]
    fitted = fit_scaling({n: [n * 1e6, n * 1.1e6] for n in (1, 2, 4, 8)}, resamples=50)
    scale = ScaleFit(fits={"throughput_bytes_per_s": fitted}, simulated=0, complete=True)
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    fits.show(scale, predict=None, style="text")
    tables += out.getvalue().splitlines()
    assert list(too_long("\n".join(tables), columns)) == []
