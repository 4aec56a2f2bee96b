"""The result of a run for its level, and the report of a search."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from serverless_bench.features.limit.block import Block, Growth, Objective, block_of
from serverless_bench.features.limit.result import Limit, lines, result_of
from serverless_bench.features.limit.search import Search
from serverless_bench.job.workload import Load
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import Dropped, InvocationRecord, Lost
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, header, job, lost, operation, outcome, record

MS = S // 1000
OBJECTIVE = Objective(p99_s=0.05, errors=0.001)


def saved(path: Path, results: Sequence[InvocationRecord | Lost]) -> Run:
    of = replace(job(number=len(results)), load=Load(rate=2.0))
    with Archive(path, header=header(of), ledger=()) as archive:
        for result in results:
            archive.append(outcome(result))
    return load_run(path)


def test_a_block_counts_operations_due_after_settling(tmp_path: Path) -> None:
    def due(index: int, *, at: int, took: int, error: str | None = None) -> object:
        one = operation(index, start_ns=at + took // 2, end_ns=at + took, error=error)
        return replace(one, intended_ns=at)

    ops = [
        due(0, at=0, took=900 * MS),
        due(1, at=S, took=40 * MS),
        due(2, at=2 * S, took=60 * MS),
        due(3, at=3 * S, took=10 * MS, error="SlowDown"),
        due(4, at=4 * S, took=20 * MS),
    ]
    never = Dropped(first_ns=5 * S, last_ns=6 * S, count=2, until_ns=7 * S)
    one = replace(record(0, ops), dropped=(never,))  # type: ignore[arg-type] # operations
    block = block_of(saved(tmp_path / "r", [one]), 2, 0.5)
    assert block.took_s.tolist() == [0.02, 0.04, 0.06]
    assert (block.failed, block.dropped, block.due) == (1, 2, 6)
    assert block.bad(OBJECTIVE) == {"p99": 4, "errors": 3}
    assert block.bad(Objective(errors=0.1)) == {"errors": 3}
    # From 0.5 s to the last that was due, at 6 s.
    assert block.achieved_per_s == 4 / 5.5


def test_a_lost_function_loses_its_share_of_operations(tmp_path: Path) -> None:
    ops = [
        replace(operation(n, start_ns=n * S, end_ns=n * S + MS), intended_ns=n * S)
        for n in range(4)
    ]
    block = block_of(saved(tmp_path / "r", [record(0, ops), lost(1)]), 2, 0.0)
    assert (block.failed, block.due) == (4, 8)
    nothing = block_of(saved(tmp_path / "n", [lost(0)]), 2, 0.0)
    assert nothing.bad(OBJECTIVE) == {"p99": 1, "errors": 1}


def test_operations_longer_than_a_block_are_seen(tmp_path: Path) -> None:
    ops = [operation(n, start_ns=n * MS, end_ns=60 * S) for n in range(3)]
    block = block_of(saved(tmp_path / "r", [record(0, ops)]), 3, 1.0)
    assert block.bad(OBJECTIVE) == {"p99": 3, "errors": 0}
    assert block.due == 3


def test_a_queue_that_grows_breaks_the_objective_before_it_is_too_long(tmp_path: Path) -> None:
    def block(name: str, later: int, intended: int | None = 0) -> Block:
        ops = [
            replace(
                operation(n, start_ns=n * 50 * MS, end_ns=n * 50 * MS + 10 * MS + n * later),
                intended_ns=None if intended is None else n * 50 * MS,
            )
            for n in range(80)
        ]
        return block_of(saved(tmp_path / name, [record(0, ops)]), 20, 0.0)

    # 1 % more than it can do: a twentieth of a second later, each by half a millisecond.
    growing, steady = block("growing", MS // 2), block("steady", 0)
    assert growing.took_s[-1] < 0.05
    assert growing.bad(OBJECTIVE) == {"p99": 80, "errors": 0}
    assert growing.bad(Objective(errors=0.1)) == {"errors": 0}
    assert steady.bad(OBJECTIVE) == {"p99": 0, "errors": 0}
    # In a closed loop only started operations wait.
    assert block("closed", MS // 2, None).bad(OBJECTIVE) == {"p99": 0, "errors": 0}


def made(*, lowest: int = 10, highest: int = 1000, limit: int = 100, blocks: int = 200) -> Limit:
    """Search on a store that is at 10 ms up to a limit, and never begins a fifth above it."""
    search = Search(
        allowed=OBJECTIVE.allowed, lowest=lowest, highest=highest, precision=0.05, seed=1
    )
    found: list[Block] = []
    while len(found) < blocks and (level := search.next_level()) is not None:
        late = 0 if level <= limit else 1000
        block = Block(
            level=level,
            path=None,
            took_s=np.full(5000 - late, 0.01),
            failed=0,
            dropped=late,
            achieved_per_s=float(min(level, limit)),
            growth=Growth(per_s=(slope := max(0.0, level / limit - 1)), low_per_s=slope),
        )
        search.add(level, block.bad(OBJECTIVE), block.due)
        found.append(block)
    return result_of(
        search, found, OBJECTIVE, over="rate", block_s=5, settle_s=1, took_s=5 * len(found)
    )


def test_a_report_has_every_level_with_its_results() -> None:
    limit = made()
    assert limit.ended == "precision"
    assert limit.low is not None
    assert limit.high is not None
    assert limit.low <= 100 < limit.high
    assert sum(row.blocks for row in limit.rows) == limit.blocks
    below = [row for row in limit.rows if row.level < limit.low]
    above = [row for row in limit.rows if row.level > limit.high]
    assert {row.verdict for row in below} == {"holds"}
    assert {row.verdict for row in above} == {"does not hold"}
    assert all(row.p50_s == row.p99_s == 0.01 for row in below)
    assert all(row.p99_s is None and row.errors == 0.2 for row in above)
    assert all((row.growing, row.later_per_s) == (0, 0.0) for row in below)
    assert all(row.growing == row.blocks for row in above)
    assert limit.knee is not None
    assert limit.knee.most_per_s == 100
    text = "\n".join(lines(limit, "text"))
    assert f"holds up to {limit.limit} operations per second" in text
    assert f"95% interval {limit.low} to {limit.high}" in text
    assert "ended: within 5.0% of the limit" in text
    assert "p99 50 ms and errors 0.100%" in text
    assert re.search(r"160 .* grows 600 ms/s  +1  does not hold", text), text
    assert re.search(r"  40 .* steady  +1  holds", text), text
    markdown = list(lines(limit, "markdown"))
    assert markdown[1].count(" --: |") == 9
    assert sum(line.startswith("| ") for line in markdown) == 2 + len(limit.rows)
    data = json.loads(orjson.dumps(limit.to_json()))
    assert data["limit"] == limit.limit
    assert data["objective"] == {"p99_s": 0.05, "errors": 0.001}
    assert [row["verdict"] for row in data["rows"]] == [row.verdict for row in limit.rows]


def test_a_report_says_why_there_is_no_limit() -> None:
    below, above, short = made(lowest=200), made(highest=50), made(blocks=6)
    assert (below.ended, below.limit, below.low) == ("lowest", None, None)
    assert "does not hold even at 200 operations per second" in "\n".join(lines(below, "text"))
    assert (above.ended, above.limit, above.high) == ("highest", None, None)
    assert "holds up to 50 operations per second, the highest" in "\n".join(lines(above, "text"))
    # Six blocks miss most stalls.
    assert (short.ended, short.limit) == ("undecided", None)


def test_without_evidence_the_result_is_undecided() -> None:
    """200 operations, none of them slow, leave 1 % open: the objective is not broken."""
    objective = Objective(p99_s=60.0)
    search = Search(allowed=objective.allowed, lowest=1, highest=2, precision=0.2)
    assert search.next_level() == 1
    block = Block(
        level=1, path=None, took_s=np.full(200, 0.01), failed=0, dropped=0, achieved_per_s=1485.0
    )
    search.add(1, block.bad(objective), block.due)
    limit = result_of(
        search, [block], objective, over="number", block_s=0.2, settle_s=0.04, took_s=1
    )
    assert (limit.ended, limit.limit, limit.low, limit.high) == ("undecided", None, None, None)
    assert [row.verdict for row in limit.rows] == ["undecided"]
    text = "\n".join(lines(limit, "text"))
    assert "limit: p99 60 s is not shown to hold at any level\n" in text
    assert "ended: undecided" in text
    assert "to show that a level holds takes about 228 operations" in text


def test_without_bad_operations_no_level_is_broken() -> None:
    """Jeffreys' prior calls a level broken at which three operations were good."""
    objective = Objective(p99_s=60.0, errors=0.0001)
    search = Search(allowed=objective.allowed, lowest=1, highest=64, precision=0.2)
    blocks: list[Block] = []
    while len(blocks) < 12 and (level := search.next_level()) is not None:
        blocks.append(
            Block(
                level=level,
                path=None,
                took_s=np.full(3, 0.01),
                failed=0,
                dropped=0,
                achieved_per_s=3.0,
            )
        )
        search.add(level, blocks[-1].bad(objective), 3)
    limit = result_of(
        search, blocks, objective, over="number", block_s=0.2, settle_s=0.04, took_s=3
    )
    assert limit.ended == "undecided"
    assert {row.verdict for row in limit.rows} == {"undecided"}


def test_a_level_that_fails_for_a_lower_one_says_so() -> None:
    """A store that stalled once at levels from 15 to 30 was as fast as below at higher ones."""
    search = Search(allowed=OBJECTIVE.allowed, lowest=10, highest=80, precision=0.2, seed=1)
    blocks: list[Block] = []
    while len(blocks) < 40 and (level := search.next_level()) is not None:
        slow = 1000 if 15 <= level <= 30 else 0
        blocks.append(
            Block(
                level=level,
                path=None,
                took_s=np.concatenate((np.full(5000 - slow, 0.01), np.full(slow, 1.0))),
                failed=0,
                dropped=0,
                achieved_per_s=float(level),
            )
        )
        search.add(level, blocks[-1].bad(OBJECTIVE), 5000)
    # Higher levels were tried before the stalls began.
    blocks += [replace(blocks[0], level=level) for level in (40, 80)]
    limit = result_of(
        search, blocks, OBJECTIVE, over="rate", block_s=5, settle_s=1, took_s=5 * len(blocks)
    )
    rows = {row.level: row for row in limit.rows}
    broken = [level for level in rows if 15 <= level <= 30]
    assert {rows[level].broken_below for level in (10, *broken)} == {None}
    for level in (40, 80):
        assert (rows[level].verdict, rows[level].broken_below) == ("does not hold", max(broken))
    text = [line for line in lines(limit, "text") if line.lstrip().startswith(("40 ", "80 "))]
    assert len(text) == 2
    assert all(line.endswith(f"not shown: {max(broken)} below was broken") for line in text)
