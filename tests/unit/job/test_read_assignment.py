"""Assignment of reads: over all functions, each requested byte is read as often as requested."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.plan import check
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import declared_size, object_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.read_assignment import functions_for, positions, share
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.workload import Load, open_workload
from tests.data.runs import job
from tests.house.members import uses
from tests.tables import each_row


def keys_of(sizes: list[int]) -> list[str]:
    return [
        object_key(prefix="p", run_id="r", index=0, launch=0, number=number, size=size)
        for number, size in enumerate(sizes)
    ]


def reading(
    number: int, *, objects: int = 1, split: int | None = None, threads: int = 1
) -> JobSpec:
    of = replace(job(number=number, workload="read", size=None), objects=objects)
    return replace(of, load=Load(split=split, threads=threads))


def bytes_read(invocations: list[InvocationSpec]) -> Counter[tuple[str, int]]:
    """Number of requests for each byte of each object."""
    read: Counter[tuple[str, int]] = Counter()
    workload = open_workload("read")
    for invocation in invocations:
        for thread in range(invocation.load.threads):
            for asked in workload.operations(invocation, thread):
                ranged = asked.kind is OperationKind.GET_RANGE
                length = asked.length if ranged else asked.size
                assert length is not None
                assert length > 0
                read.update((asked.key, asked.offset + at) for at in range(length))
    return read


@uses("workload read")
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_every_byte_is_read_as_often_as_asked(
    sizes: list[int],
    groups: int,
    split: int,
    objects: int,
    threads: int,
    repeats: int,
    launch: int,
) -> None:
    keys = keys_of(sizes)
    of = reading(groups * split, objects=objects, split=split, threads=threads)
    of = replace(of, read_times=repeats)
    check(of, keys)
    # A relaunched function reads the same objects.
    waves = [
        next(
            invocation_specs(of, run_id="r", created_ns=0, keys=keys, wave=launch, indexes={index})
        )
        for index in range(of.number)
    ]
    # A naive implementation: cycle through the list, one group after the other.
    asked: Counter[tuple[str, int]] = Counter()
    for number in range(groups * objects):
        position = number % len(keys)
        for at in range(sizes[position]):
            asked[keys[position], at] += repeats
    assert bytes_read(waves) == asked


@given(st.integers(1, 50), st.integers(1, 9), st.integers(1, 9))
def test_without_a_number_every_object_is_read(keys: int, objects: int, split: int) -> None:
    functions = functions_for(keys, objects=objects, split=split)
    dealt = Counter(
        position
        for index in range(0, functions, split)
        for position in positions(index, keys=keys, objects=objects, split=split)
    )
    assert set(dealt) == set(range(keys))
    if keys % objects == 0:
        assert set(dealt.values()) == {1}


@each_row(("objects", "split"), [(1, 4), (2, 2), (2, 3), (4, 2), (4, 4), (3, 5)])
def test_a_group_shares_each_of_its_objects(objects: int, split: int) -> None:
    """No function reads a whole object, or the same part of two groups."""
    for index in range(split):
        mine = positions(index, keys=100, objects=objects, split=split)
        assert mine == list(range(objects))
    shares = [share(1_000_003, index, split) for index in range(split)]
    assert max(length for _, length in shares) - min(length for _, length in shares) <= 1


@given(st.integers(1, 2**53), st.integers(1, 10_000), st.integers(0, 10**6))
def test_shares_are_neighbours(size: int, split: int, index: int) -> None:
    index -= index % split
    at = 0
    for mine in {0, 1, split // 2, split - 1} & set(range(split)):
        offset, length = share(size, index + mine, split)
        assert share(size, index + mine, split) == share(size, mine, split)
        assert 0 <= length <= -(-size // split)
        at = max(at, offset + length)
    assert at == size


@uses("workload read")
def test_an_incomplete_group_is_refused() -> None:
    with pytest.raises(UsageError, match="`number` 6 is not a multiple of `split` 4") as caught:
        check(reading(6, split=4), keys_of([9]))
    assert "`number` 8" in caught.value.hint


@uses("workload read")
def test_an_object_of_unknown_size_is_not_shared() -> None:
    check(reading(4), ["foreign.bin"])
    with pytest.raises(UsageError, match=r"foreign\.bin"):
        check(reading(4, split=4), [*keys_of([9]), "foreign.bin"])


def test_keys_contain_sizes_for_any_prefix() -> None:
    assert [declared_size(key) for key in keys_of([1, 22])] == [1, 22]
