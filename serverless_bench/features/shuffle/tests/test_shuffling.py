"""How long reducers waited, and for whom."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from tests.data.loads import load_of
from tests.data.runs import S, job, operation, outcome, record, saved

MS = S // 1000


@pytest.mark.parametrize(("poll_ms", "stragglers_s"), [(50, 0.03 * 4), (2000, 0.03 * 4)])
def test_a_poll_that_notices_the_last_mapper_waits_for_nobody(
    tmp_path: Path, poll_ms: int, stragglers_s: float
) -> None:
    """Mappers are 30 ms apart, so four reducers wait at most four times that for the slower."""
    records = [record(index, [operation(end_ns=S + index * 10 * MS)]) for index in range(4)]
    wait = operation(start_ns=0, end_ns=S + poll_ms * MS, size=0, kind=OperationKind.WAIT)
    records += [record(index, [wait]) for index in range(4, 8)]
    load = load_of("shuffle", mappers=4, reducers=4, total=1 << 20)
    of = replace(job(number=1, size=None), workload="shuffle", number=8, load=load)
    shuffle = summarize(saved(tmp_path / "run", [*map(outcome, records)], of=of)).parts["shuffle"]
    assert shuffle.waited_s == pytest.approx(4 * (1 + poll_ms / 1000))
    # From the end of the second mapper to that of the last.
    assert shuffle.waited_for_stragglers_s is not None
    assert shuffle.waited_for_stragglers_s == pytest.approx(4 * 0.02)
    assert shuffle.waited_for_stragglers_s <= stragglers_s
