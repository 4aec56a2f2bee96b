"""The benchmarks take their flags; in `make full`, each runs in its smallest form.

With everything that it is about.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from docs.make_performance import recorded, texts
from docs.tables import markdown
from serverless_bench.clients import CLIENTS

ROOT = Path(__file__).parents[3]
SUBJECTS = ("socket", "bytes", "draft", *CLIENTS)
SMALLEST = [
    # Their other arguments, and the beginnings of their tables' rows.
    pytest.param("acknowledged", [("4", "3")]),
    pytest.param("bodies", [(client,) for client in CLIENTS]),
    pytest.param(
        "clients --scheme http", product(["http"], ["4"], ["1"], ["put", "get"], SUBJECTS)
    ),
    pytest.param(
        "clients --scheme https",
        product(["https"], ["4"], ["1"], ["put", "get"], SUBJECTS),
    ),
    pytest.param("collect", [("20", "2", "20")]),
    pytest.param("far", [("events", "launched", "100"), ("objects", "cleaned", "up", "100")]),
    pytest.param("forecast", [("Lithops",), ("PyWren",), ("Prisma",)]),
    pytest.param("fanout --executors lithops", [("lithops", "2")]),
    pytest.param(
        "history", [("6", "1", "3.0%"), ("6", "2%"), ("the same", "6"), ("15% slower", "6")]
    ),
    pytest.param(
        "comparisons", [("`compare`", "skewed"), ("`ab`", "normal"), ("`history`", "bimodal")]
    ),
    pytest.param("hedging", [("None",), ("0.05",), ("p95",), ("before",), ("after",)]),
    pytest.param("limits", [("200", "op/s"), ("2:fixed:10ms",)]),
    pytest.param("page", [("10",)]),
    pytest.param("refused", [("2", "throughput_bytes_per_s"), ("2", "completion_s.p99")]),
    pytest.param(
        "simulate",
        [
            ("10", "1", "1"),
            *(("network of each, with a burst", "2", name) for name in ("write", "read")),
            *(("connections, latency", "2", name) for name in ("write", "read")),
        ],
    ),
    pytest.param(
        "puts --store slow --store serve --shape 1x1 --shape 8x1",
        product(["slow", "serve"], ["put"], ["4"], ["3"], ["wire", "again"], ["1x1", "8x1"]),
    ),
    pytest.param("replay", [("50", "1", "50")]),
    pytest.param("request_log", [("head",), ("get",), ("put",), ("get", "1", "MiB")]),
]
ON_THE_PAGE: Mapping[str, Sequence[tuple[str, ...]]] = {
    "Parts of a small object": [("whole", "put"), ("whole", "get"), ("stopwatches",)],
    "Fan-out": [("inline", "2"), ("local", "2")],
    "Fan-out on a Dask cluster": [("dask", "2")],
    "Functions far away": [("20", "2", "20")],
    "Start": [
        *(("Python", "that", "imports", "click"), ("cold", "start", "of", "the", "function")),
        *(("sbench", "--help"), ("sbench", "write", "--help"), ("sbench", "report", "RUN")),
        ("sbench", "write", "of", "one", "object", "now"),
        *(("sbench", "ls"), ("sbench", "study", "ls"), ("sbench", "check", "RUN")),
        *(("sbench", "compare", "of", "twice", "six"), ("sbench", "clean", "of", "nothing")),
        *(("middle", "of", "1", "refusals"), ("slowest", "of", "1", "refusals")),
    ],
    "Large runs": [("10",)],
    "The loopback store": [("1", name) for name in ("drained", "checked", "regenerated")],
    "Watching a run": [("board,", "write"), ("board,", "read"), ("view",), ("line",)],
}
"""Beginnings of rows, for benchmarks that only run in their smallest form for the page."""


@pytest.mark.full
def test_the_figures_of_performance_are_made_in_their_smallest_form(tmp_path: Path) -> None:
    file = tmp_path / "performance.json"
    command = [sys.executable, "docs/make_performance.py", "--smallest", "--into", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = recorded(file).tables
    assert list(made) == [table.title for table in texts()]
    for title, beginnings in ON_THE_PAGE.items():
        assert lacking(markdown(made[title].rows), beginnings) == [], title


def lacking(output: str, beginnings: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the beginnings that no row of the tables has."""
    lines = [line.lstrip() for line in output.replace("| ", "").splitlines()]
    return [
        words for words in beginnings if not any(line.startswith(" ".join(words)) for line in lines)
    ]


def test_every_benchmark_is_among_them() -> None:
    named = {str(case.values[0]).split()[0] for case in SMALLEST}
    of_the_page = {table.title: table.command.split()[0] for table in texts()}
    named |= {of_the_page[title] for title in ON_THE_PAGE}
    assert named | {"common"} == {path.stem for path in (ROOT / "benchmarks").glob("*.py")}


def test_each_takes_the_flags_that_it_is_called_with() -> None:
    """In one process: what they import is there, and their parsers take every command."""
    smallest = [f"{case.values[0]} --smallest" for case in SMALLEST]
    of_the_page = [f"{table.smallest or table.command} --smallest" for table in texts()]
    for script in [*smallest, *of_the_page, *(table.command for table in texts())]:
        name, *flags = script.split()
        benchmark = import_module(f"benchmarks.{name}")
        assert callable(benchmark.main)
        assert "--smallest" in benchmark.parser().format_help()
        # argparse exits if it refuses them.
        asked = benchmark.parser().parse_args(flags)
        assert asked.smallest is ("--smallest" in flags), script


def test_every_client_has_a_subject_to_compare_it_with() -> None:
    bare = import_module("benchmarks.subjects.bare")
    assert [name for name in CLIENTS if not callable(getattr(bare, f"_{name}", None))] == []


@pytest.mark.full
@pytest.mark.parametrize(("script", "rows"), SMALLEST)
def test_the_smallest_form_runs(script: str, rows: Iterable[tuple[str, ...]]) -> None:
    name, *flags = script.split()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--smallest", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert lacking(done.stdout, rows) == []
