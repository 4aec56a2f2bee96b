"""The operations of mappers and reducers, their plan, and what a reducer waits for."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import BadResponse, DeadlineExceeded, NotFound, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Client
from serverless_bench.driver.checked_job import check_job
from serverless_bench.driver.plan import ledger
from serverless_bench.features.cost.expected import at_most, expected
from serverless_bench.features.cost.forecast import CostConditions
from serverless_bench.features.cost.outlook import plan
from serverless_bench.features.shuffle.load import ShuffleLoad
from serverless_bench.features.shuffle.operation import Waiter
from serverless_bench.features.shuffle.workload import WORKLOAD, mapper_of
from serverless_bench.job.abilities import UNTIMED
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Transfer
from serverless_bench.job.workload import next_operation, open_workload, succeeding
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier
from tests.commands.command import Call
from tests.data.runs import TARGET
from tests.tables import each_row

READS = (OperationKind.GET, OperationKind.GET_RANGE)


def job(mappers: int = 3, reducers: int = 4, total: int = 1201, **load: Any) -> JobSpec:
    return JobSpec(
        workload="shuffle",
        target=TARGET,
        number=mappers + reducers,
        load=ShuffleLoad(mappers=mappers, reducers=reducers, total=total, **load),
    )


def functions(of: JobSpec) -> list[InvocationSpec]:
    return list(invocation_specs(of, run_id="r", created_ns=0))


def operations(invocation: InvocationSpec) -> list[OperationSpec]:
    return [
        operation
        for thread in range(invocation.load.threads)
        for operation in succeeding(WORKLOAD, WORKLOAD.operations(invocation, thread))
    ]


def test_a_mapper_writes_a_partition_for_each_reducer_and_that_one_reads_it() -> None:
    first, *_, last = functions(job(mappers=2, reducers=3, total=14))
    puts, reads = operations(first), operations(last)
    # 14 bytes in 6 parts: 2, 2, 3, 2, 2, 3.
    assert [put.size for put in puts] == [2, 2, 3]
    assert [put.key.rsplit("/", 2)[1] for put in puts] == ["0", "1", "2"]
    wait, own, other = reads
    assert (wait.kind, wait.key) == (OperationKind.WAIT, f"{TARGET.prefix}r/shuffle/2/")
    # The third reducer starts with the first mapper again.
    assert (own.key, own.size, other.size) == (puts[2].key, 3, 3)
    assert [mapper_of(read.key) for read in (own, other)] == [0, 1]
    assert mapper_of("a/b.10") == -1


def test_ranges_of_an_object_per_mapper_follow_each_other() -> None:
    first, _, *readers = functions(job(mappers=2, reducers=3, total=14, partitions="ranges"))
    (put,) = operations(first)
    assert put.size == declared_size(put.key) == 7
    reads = [read for one in readers for read in operations(one) if read.key == put.key]
    assert [(read.offset, read.length, read.size) for read in reads] == [
        (0, 2, 7),
        (2, 2, 7),
        (4, 3, 7),
    ]


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 50),
    st.sampled_from(("objects", "ranges")),
    st.sampled_from(("barrier", "eager")),
)
def test_each_byte_is_written_and_read_once_by_any_launch(
    mappers: int, reducers: int, threads: int, more: int, partitions: str, start: str
) -> None:
    total = mappers * reducers + more
    of = job(mappers, reducers, total, threads=threads, partitions=partitions, reduce=start)
    every = [operations(one) for one in functions(of)]
    puts = [op for ops in every[:mappers] for op in ops]
    reads = [op for ops in every[mappers:] for op in ops if op.kind in READS]
    assert {op.kind for op in puts} == {OperationKind.PUT}
    assert sum(put.size or 0 for put in puts) == total
    covered = Counter(
        (read.key, read.offset + at)
        for read in reads
        for at in range(cast("int", read.size if read.length is None else read.length))
    )
    assert covered == Counter((put.key, at) for put in puts for at in range(put.size or 0))
    again = list(invocation_specs(of, run_id="r", created_ns=0, wave=1))
    assert [operations(one) for one in again] == every
    assert sorted(ledger(of, functions(of))) == sorted(put.key for put in puts)
    kinds = Counter(op.kind for ops in every for op in ops)
    assert kinds == {kind: count for kind, count, _ in WORKLOAD.tally(of.load).rows}


def test_a_reducer_reads_what_exists_until_a_wait_fails() -> None:
    reader = functions(job(reduce="eager"))[3]
    stream, ok = WORKLOAD.operations(reader), None
    first = next_operation(stream, ok)
    assert first is not None
    theirs = first.keys
    assert len(theirs) == 3
    first.keys = theirs[1:2]
    read = next_operation(stream, True)  # noqa: FBT003 - a result
    second = next_operation(stream, False)  # noqa: FBT003 - the read failed, and is not repeated
    assert read is not None
    assert second is not None
    assert (read.key, second.keys) == (theirs[1], (theirs[0], theirs[2]))
    second.keys = theirs[2:]
    last = next_operation(stream, False)  # noqa: FBT003 - the wait failed
    assert last is not None
    assert last.key == theirs[2]
    assert next_operation(stream, True) is None  # noqa: FBT003 - a result


class Listing:
    """A client with pages of two keys; more exist each time that the first page is asked for."""

    def __init__(self, *states: Sequence[str]) -> None:
        self.states = list(states)
        self.requests = 0

    def list_keys(self, prefix: str, after: str, exchange: object) -> tuple[list[str], bool]:
        del exchange
        self.requests += 1
        if not after and self.requests > 1 and len(self.states) > 1:
            self.states.pop(0)
        keys = [key for key in self.states[0] if key.startswith(prefix) and key > after]
        return keys[:2], len(keys) > 2


def waited(
    client: Listing, waiter: Waiter, *keys: str, seconds: float = 10_000.0
) -> OperationContext:
    deadline_ns = monotonic_ns() + round(seconds * NS_PER_S)
    retrier = Retrier(cast("Client", client), 0, deadline_ns, random.Random(0))
    spec = OperationSpec(kind=OperationKind.WAIT, key="f/", size=None, keys=keys)
    context = OperationContext(spec, Transfer(), retrier)
    waiter.perform(context)
    return context


def waiter(**load: Any) -> Waiter:
    return Waiter(ShuffleLoad(poll=1e-4, **load), ("f/a", "f/b", "f/c", "f/d"))


def test_a_barrier_waits_for_all_and_an_eager_reducer_for_any() -> None:
    states: tuple[list[str], ...] = ([], ["f/a", "f/b", "f/c"], ["f/a", "f/b", "f/c", "f/d"])
    client = Listing(*states)
    assert waited(client, waiter(), "f/a", "f/d").spec.keys == ("f/a", "f/d")
    # An empty page, two pages, and two.
    assert client.requests == 5
    client, eager = Listing(*states), waiter(reduce="eager")
    assert waited(client, eager, "f/a", "f/d").spec.keys == ("f/a",)
    assert waited(client, eager, "f/b").spec.keys == ("f/b",)
    # What has been seen is not looked for again.
    assert client.requests == 3


def test_after_a_last_look_a_reducer_waits_no_more() -> None:
    client, impatient = Listing(["f/a"]), waiter(patience=1e-3)
    with pytest.raises(NotFound, match="1 of 2 objects do not exist"):
        waited(client, impatient, "f/a", "f/b")
    before = client.requests
    with pytest.raises(NotFound, match="1 of 1 objects do not exist"):
        waited(client, impatient, "f/b")
    assert client.requests == before + 1


def test_a_wait_ends_with_its_function() -> None:
    with pytest.raises(DeadlineExceeded):
        waited(Listing([]), waiter(), "f/a", seconds=-1.0)


class Endless(Listing):
    """A listing that never ends: each page is new, or the same again."""

    def __init__(self, number: Iterator[int]) -> None:
        super().__init__([])
        self.number = number

    def list_keys(self, prefix: str, after: str, exchange: object) -> tuple[list[str], bool]:
        del after, exchange
        self.requests += 1
        # As many keys as S3 lists: 3,000 pages of them are not read in the patience of a test.
        return [f"{prefix}{next(self.number):08}" for _ in range(1000)], True


def test_an_endless_listing_ends_with_the_patience_and_is_not_kept() -> None:
    listing, reducer = Endless(count()), waiter(patience=0.02)
    with pytest.raises(NotFound):
        waited(listing, reducer, "f/a")
    assert listing.requests > 1
    assert not any("f/0000" in str(value) for value in vars(reducer).values())


def test_an_endless_listing_ends_with_its_function() -> None:
    with pytest.raises(DeadlineExceeded):
        waited(Endless(count()), waiter(patience=900.0), "f/a", seconds=0.02)


def test_a_page_that_comes_again_is_an_error() -> None:
    with pytest.raises(BadResponse, match="repeatedly"):
        waited(Endless(repeat(7)), waiter(patience=900.0), "f/a")


SETTING = CostConditions(memory_mib=1769, architecture="arm64")


def test_the_plan_counts_requests_and_says_which_layout_is_cheapest() -> None:
    of = replace(job(100, 100, 100 << 20), concurrency=200)
    found = expected(of, SETTING)
    assert found is not None
    assert [phase.requests for phase in found.phases] == [10_000, 10_100]
    assert (found.usage.puts, found.usage.gets) == (10_100, 10_020)
    first, last = found.phases
    # 100 puts of 46 ms on average, one after the other, by the slowest of 100 functions; each
    # reducer is paid from the start.
    assert 4.6 < first.end_s == first.function_s < 6.5
    assert last.end_s == last.function_s > first.end_s + 2.0
    shown = dict(plan(of).rows())
    assert shown["ranges, eager"].endswith("fastest, cheapest")
    assert "est" not in shown["objects, barrier"].rpartition("class")[2]


def test_reducers_that_start_late_are_not_paid_for_waiting() -> None:
    of = job(100, 100, 100 << 20)
    found = expected(replace(of, concurrency=100), SETTING)
    assert found is not None
    assert found.phases[1].function_s < found.phases[0].function_s
    eager = expected(replace(job(100, 100, 100 << 20, reduce="eager"), concurrency=200), SETTING)
    assert eager is not None
    assert eager.phases[1].end_s < found.phases[1].end_s


def test_no_function_can_cost_more_than_the_plan_says() -> None:
    # A reducer may list until its deadline.
    usage = at_most(replace(job(10, 2, 1000), deadline=50.0), SETTING)
    assert usage.puts >= 50 / 0.5
    assert usage.gets >= 10


@each_row(
    ("given", "message"),
    [
        ({"number": 3}, "`number` is 3, but there are 8 mappers and reducers"),
        ({"size": 15}, "`size` 15 is too small for 16 partitions"),
        ({"mappers": 4000, "reducers": 4000}, "are 16,000,000 partitions"),
        ({"mappers": 0}, "`mappers` must be at least 1"),
        ({"objects": 2}, "`objects` does not apply to a shuffle"),
        ({"duration": 3}, "`duration` does not apply to a shuffle"),
        ({"partitions": "files"}, "`partitions`"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_job({"workload": "shuffle", "name": "s", **given})


def test_settings_become_a_job_of_as_many_functions() -> None:
    made = check_job({"workload": "shuffle", "name": "s", "mappers": 3, "mb": 7}).job
    assert (made.number, ShuffleLoad.narrow(made.load).total, made.size) == (7, 7 << 20, None)
    usual = check_job({"workload": "shuffle", "name": "s"}).job.load
    assert ShuffleLoad.narrow(usual).total == 64 << 20


@pytest.mark.parametrize("name", ["shuffle", "replay"])
def test_flags_that_are_always_refused_are_not_offered(name: str, call: Call) -> None:
    code, out, _ = call(name, "--help")
    assert code == 0
    assert not [flag for flag in UNTIMED if f"--{flag.replace('_', '-')} " in out]
    usual = open_workload(name).default_number
    assert usual == (ShuffleLoad().mappers + ShuffleLoad().reducers if name == "shuffle" else 4)


@pytest.mark.parametrize("side", ["mappers", "reducers"])
def test_no_more_functions_than_a_job_may_have(side: str) -> None:
    """All partitions of a saved run are counted when it is read."""
    too_many: Any = {side: 500_001}
    with pytest.raises(UsageError, match=f"`{side}` must be at most 500,000"):
        ShuffleLoad(total=1000, **too_many)
