"""The search for records; tests/integration has launching and collecting."""

from bisect import bisect_right
from functools import partial
from itertools import chain
from queue import Queue
from threading import Event
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import SbenchError
from serverless_bench.features.remote.claims import RecordKey, record_name
from serverless_bench.features.remote.thread_pool import ThreadPool, Urgency
from serverless_bench.features.remote.view import ControlView, RequestedRecords
from serverless_bench.job.target import Target
from tests.commands.processes import PATIENCE_S

PAGE = 3
TARGET = Target(bucket="b", endpoint_url="http://store")


class Listing:
    """A store that can list records, a few at a time."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.pages = 0

    def list_page(self, folder: str, after: str, *, timeout_s: float) -> tuple[list[str], bool]:
        assert folder == "records/"
        self.pages += 1
        begin = bisect_right(self.names, after)
        return self.names[begin : begin + PAGE], begin + PAGE < len(self.names)


def name(index: int, launch: int, number: int) -> str:
    key = RecordKey(index, launch, f"{number:032x}")
    return record_name(key).removeprefix("records/")


NAMES = st.builds(name, st.integers(0, 49), st.integers(0, 2), st.integers(1, 9))


def look(names: list[str], targets: list[int]) -> tuple[list[str], Listing]:
    view, store = ControlView(TARGET, "run"), Listing(names)
    view.list_page = store.list_page  # type: ignore[method-assign]
    keys = chain.from_iterable(view.records(targets))
    found = [record_name(key).removeprefix("records/") for key in keys]
    return found, store


@given(st.sets(NAMES), st.sets(st.integers(0, 49), min_size=1))
def test_every_record_of_a_target_is_found(names: set[str], targets: set[int]) -> None:
    listed, wanted = sorted(names), sorted(targets)
    found, store = look(listed, wanted)
    mine = {one for one in listed if int(one[:8]) in targets}
    assert mine <= set(found) <= names
    assert len(found) == len(set(found))
    assert store.pages <= len(names) // PAGE + 1, "no more than it takes to list all"


@given(st.sets(NAMES), st.integers(0, 49))
def test_complete_records_are_skipped(names: set[str], target: int) -> None:
    _, store = look(sorted(names), [target])
    mine = sum(int(one[:8]) == target for one in names)
    assert store.pages <= mine // PAGE + 1


DELIVERIES = st.integers(1, 5).map(lambda n: f"{n:016x}" + "0" * 16)


@given(st.lists(st.tuples(st.integers(0, 3), DELIVERIES)))
def test_a_record_is_fetched_once_in_all_waves(keys: list[tuple[int, str]]) -> None:
    seen = RequestedRecords(4)
    new = [key for key in keys if seen.add(RecordKey(key[0], 0, key[1]))]
    assert sorted(new) == sorted(set(keys))
    other = RecordKey(4, 0, keys[0][1] if keys else "f" * 32)
    assert not seen.add(other), "no invocation of this run"


def test_urgent_tasks_do_not_wait_for_others() -> None:
    began, blocked, completions = list[Urgency](), Event(), Queue[Any]()
    pool = ThreadPool(1, completions)
    pool.submit(partial(blocked.wait, PATIENCE_S), lambda _: None, SbenchError, _raise)
    urgencies = [Urgency.CLAIM, Urgency.RECORD, Urgency.CLAIM, Urgency.LISTING, Urgency.RECORD]
    for urgency in urgencies:
        task = partial(began.append, urgency)
        pool.submit(task, lambda _: None, SbenchError, _raise, urgency)
    blocked.set()
    for _ in range(1 + len(urgencies)):
        completions.get(timeout=PATIENCE_S)()
    pool.shut_down()
    assert began == sorted(urgencies)


def _raise(error: SbenchError) -> None:
    raise error
