"""Verdicts beside "bounded by": cells with their truths, fixed before any run, and their execution.

Most judge several runs; that on second requests judges one.

Two sides are stores behind one proxy each, or one for both. Their runs are made once, by ``ab``;
``compare`` and ``history check`` are given runs of these.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.combinations.covering import Case
from tests.verdicts.bench import Bench, Outcome
from tests.verdicts.judging import Truth, judge
from tests.verdicts.proxy import Behaviour, proxy_of
from tests.verdicts.words import (
    A_FIFTH,
    MADE_WORSE,
    NO_DIFFERENCE,
    NO_LEVEL,
    NOT_KNOWN,
    difference_answer,
    limit_answer,
    load_limited,
)

Report = Mapping[str, Any]
Side = tuple[str, str]
"""A series of ``ab``, and the label of a side of it."""
_CONNECTION: Final = 2_500_000
_FAST: Final = Behaviour(connection_bytes_per_s=_CONNECTION)
_SLOW: Final = Behaviour(connection_bytes_per_s=_CONNECTION * 4 // 5)
_ERRATIC: Final = Behaviour(refused=0.25)
_SIZE: Final = "2MiB"
_JOB: Final = {
    "command": "write",
    "executor": "local",
    "number": 2,
    "size": _SIZE,
    "bucket": "test",
    "retries": 20,
}
_OTHER_PORT: Final = ("--allow", "target.endpoint_url")
_SIDES: Final[Mapping[str, tuple[Behaviour, ...]]] = {
    "equal": (_FAST,),
    "slower": (_FAST, _SLOW),
    "erratic": (_ERRATIC,),
}
"""Behaviours of the stores of both sides of ``ab``."""
_SEARCH: Final = (
    *("--executor", "local", "--number", 1, "--size", "4KiB", "--block", "1s"),
    *("--precision", "10%", "--budget", "60s"),
)
_THREADS: Final = 8
_FEW: Final = 4
HEDGING: Final = "hedging"
_DAY_NS: Final = 24 * 3600 * 10**9


@dataclass(frozen=True, kw_only=True)
class SeriesCell:
    """A command that judges runs, and the truth about them."""

    command: str
    rig: str
    """Description of how the runs are made."""
    truth: Truth
    run: Callable[[Bench], Report]
    size: str = _SIZE
    in_ci: bool = False

    @property
    def case(self) -> Case:
        """The cell as the table names it."""
        command = "read" if self.command == HEDGING else "write"
        return {"cause": self.rig, "executor": "local", "size": self.size, "command": command}

    def check(self, bench: Bench) -> Outcome:
        """Run the command and judge its verdict."""
        report = self.run(bench)
        if self.command == "limit":
            word, figures, answer = report["ended"], _limit_figures(report), limit_answer(report)
        elif self.command == HEDGING:
            hedging = report["hedging"]
            figures = f"{hedging['won']} of {hedging['hedges']} won"
            is_worse = hedging["made_worse"]
            word = "made things worse" if is_worse else "effect not known"
            answer = frozenset({MADE_WORSE}) if is_worse else NOT_KNOWN
        else:
            (document,) = report["comparisons" if "comparisons" in report else "figures"]
            word, interval = document["verdict"], _interval(document)
            figures = f"x{document['ratio']:.3f}"
            if interval is not None:
                figures += f" ({interval[0]:.3f} to {interval[1]:.3f})"
            answer = difference_answer(word, interval)
        result = judge([self.truth], [answer])
        return Outcome(self.case, [self.truth], {word: 1}, result, self.command, figures)


def _interval(document: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the interval of a ratio, from a comparison or a figure of a history."""
    if "evidence" in document:
        interval = (document["evidence"] or {}).get("interval")
        return interval and (interval["low"], interval["high"])
    return document["interval"] and tuple(document["interval"])


def _limit_figures(report: Report) -> str:
    whose = "the load's" if report["load_limited"] else "the store's"
    low, high = (report[end] or "unknown" for end in ("low", "high"))
    return f"{low} to {high}, {whose}"


def _limit(behaviour: Behaviour, *flags: str | int) -> Callable[[Bench], Report]:
    """Return a search for the limit of a store behind a proxy."""

    def run(bench: Bench) -> Report:
        with proxy_of(bench.store, behaviour) as url:
            store = ("--endpoint-url", url, "--bucket", "test", "--run-dir", bench.directory)
            return _report(bench, "limit", "write", *store, *_SEARCH, *flags)

    return run


def _hedged(behaviour: Behaviour) -> Callable[[Bench], Report]:
    """Return a run whose reads are all requested twice."""

    def run(bench: Bench) -> Report:
        keys = bench.keys(HEDGING, "4KiB", 64)
        with proxy_of(bench.store, behaviour) as url:
            store = ("--endpoint-url", url, "--bucket", "test", "--run-dir", bench.directory)
            reads = ("--key-file", keys, "--executor", "local", "--number", 1, "--objects", 64)
            return _report(bench, "read", *store, *reads, "--threads", _THREADS, "--hedge", "100ms")

    return run


def _ab(sides: str) -> Callable[[Bench], Report]:
    """Return a comparison in turns."""

    def run(bench: Bench) -> Report:
        report: Report = json.loads((_series(bench, sides) / "report").read_text())
        return report

    return run


def _series(bench: Bench, sides: str) -> Path:
    """Return the directory of a series of ``ab``, which is run unless it has been."""
    directory = bench.directory / f"ab-{sides}"
    if directory.exists():
        return directory
    jobs: list[Path] = []
    with ExitStack() as rig:
        urls = [rig.enter_context(proxy_of(bench.store, side)) for side in _SIDES[sides]]
        for url in (urls[0], urls[-1]):
            jobs.append(bench.directory / f"{sides}-{len(jobs)}.toml")
            settings = {**_JOB, "endpoint_url": url}
            jobs[-1].write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
        place = ("--run-dir", bench.directory, "--name", directory.name)
        report = _report(bench, "ab", *jobs, *place, *_OTHER_PORT)
    (directory / "report").write_text(json.dumps(report))
    return directory


def _compare(a: Side, b: Side, runs: int = 6) -> Callable[[Bench], Report]:
    """Return a comparison of some runs of two sides."""

    def run(bench: Bench) -> Report:
        folder = bench.directory / f"compare-{next(bench.numbers)}"
        for label, side in (("a", a), ("b", b)):
            for path in _runs(bench, side)[:runs]:
                shutil.copytree(path, folder / label / path.name)
        return _report(bench, "compare", folder / "a", folder / "b", *_OTHER_PORT)

    return run


def _history(old: Side, new: Side, sessions: int = 6) -> Callable[[Bench], Report]:
    """Return a check of the runs of one side against some of another, recorded days before."""

    def run(bench: Bench) -> Report:
        folder = bench.directory / f"history-{next(bench.numbers)}"
        bench.command(["history", "add", *_runs(bench, old)[:sessions], "--history", folder])
        _date_back(sorted(folder.glob("*/*.json")))
        flags = ("--history", folder, "--metric", "throughput_bytes_per_s")
        return _report(bench, "history", "check", *_runs(bench, new), *flags)

    return run


def _report(bench: Bench, *flags: str | Path | int) -> Report:
    report: Report = json.loads(bench.command([*flags, "--format", "json"]).splitlines()[-1])
    return report


def _runs(bench: Bench, side: Side) -> Sequence[Path]:
    sides, label = side
    return sorted(path.parent for path in (_series(bench, sides) / label).glob("*/run.json"))


def _date_back(files: Sequence[Path]) -> None:
    """Date recorded runs a day apart, the last one a day ago: a session is an hour."""
    for days, file in enumerate(reversed(files), start=1):
        recorded = json.loads(file.read_text())
        recorded["created_ns"] -= days * _DAY_NS
        file.write_text(json.dumps(recorded))


def _truth(*true: str, specific: Sequence[str] = ()) -> Truth:
    return Truth(frozenset(true), frozenset(specific or true))


_NOTHING: Final = _truth()
_SLOWER: Final = _truth(A_FIFTH)
_SAME: Final = _truth(NO_DIFFERENCE)
_ONE_STORE: Final = "one store for both"
_TWO_STORES: Final = "2.5 MB/s a connection, and 2 MB/s"
_LOAD_LIMITED: Final = load_limited("limit at 100/s")

SERIES: Final = (
    SeriesCell(
        command="limit",
        rig="queue that lets 200 requests pass each second",
        truth=_truth("limit at 200/s"),
        run=_limit(
            Behaviour(per_s=200),
            *("--p99", "200ms", "--threads", 32, "--objects", 32, "--lowest", 50),
        ),
        size="4KiB",
    ),
    SeriesCell(
        command="limit",
        rig="one in five requests answered 503 at any rate, and one in a hundred allowed",
        truth=_truth(NO_LEVEL),
        run=_limit(
            Behaviour(refused=0.2),
            *("--errors", "1%", "--retries", 0, "--threads", 16, "--objects", 16),
            *("--lowest", 100, "--block", "0.5s", "--budget", "15s"),
        ),
        size="4KiB",
        in_ci=True,
    ),
    SeriesCell(
        command="limit",
        rig=f"80 ms before each answer, and {_THREADS} threads that ask",
        truth=_truth("limit at 100/s", _LOAD_LIMITED, specific=[_LOAD_LIMITED]),
        run=_limit(
            Behaviour(latency_s=0.08),
            *("--p99", "200ms", "--threads", _THREADS, "--objects", _THREADS, "--lowest", 25),
        ),
        size="4KiB",
    ),
    SeriesCell(
        command=HEDGING,
        rig="queue that lets 40 requests pass each second",
        truth=_truth(MADE_WORSE),
        run=_hedged(Behaviour(per_s=40)),
        size="4KiB",
    ),
    SeriesCell(
        command=HEDGING,
        rig="150 ms before each answer, without a queue",
        truth=_NOTHING,
        run=_hedged(Behaviour(latency_s=0.15)),
        size="4KiB",
    ),
    SeriesCell(command="ab", rig=_ONE_STORE, truth=_SAME, run=_ab("equal")),
    SeriesCell(command="ab", rig=_TWO_STORES, truth=_SLOWER, run=_ab("slower"), in_ci=True),
    SeriesCell(
        command="ab",
        rig="one store for both, which answers every fourth request 503",
        truth=_NOTHING,
        run=_ab("erratic"),
    ),
    SeriesCell(
        command="compare",
        rig="two stores that are alike",
        truth=_SAME,
        run=_compare(("slower", "a"), ("equal", "a")),
    ),
    SeriesCell(
        command="compare",
        rig=_TWO_STORES,
        truth=_SLOWER,
        run=_compare(("equal", "a"), ("slower", "b")),
    ),
    SeriesCell(
        command="compare",
        rig=f"the same, {_FEW} runs a side",
        truth=_NOTHING,
        run=_compare(("slower", "a"), ("slower", "b"), _FEW),
        in_ci=True,
    ),
    SeriesCell(
        command="history check",
        rig=_ONE_STORE,
        truth=_SAME,
        run=_history(("equal", "a"), ("equal", "b")),
    ),
    SeriesCell(
        command="history check",
        rig=_TWO_STORES,
        truth=_SLOWER,
        run=_history(("slower", "a"), ("slower", "b")),
        in_ci=True,
    ),
    SeriesCell(
        command="history check",
        rig=f"the same, {_FEW} sessions recorded",
        truth=_NOTHING,
        run=_history(("slower", "a"), ("slower", "b"), _FEW),
    ),
)
