"""Checks of a Dask cluster before any launch."""

import json
import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench import __version__
from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.dask.executor import (
    DaskCluster,
    DaskWorker,
    _clock_notes,
    check_place,
    dask_scheduler,
)
from serverless_bench.features.dask.worker import code_digest, describe
from serverless_bench.features.remote.host_process import pickled_error
from tests.tables import each_row
from tests.unit.base.test_imports import HEAVY, modules_after

NAMED = "Dask worker tcp://10.0.0.1:40000 on node1"
WORKER = DaskWorker(
    address="tcp://10.0.0.1:40000",
    slots=2,
    host="node1",
    sbench=__version__,
    code=code_digest(),
    distributed="2026.8.0",
    python="3.13.1",
    machine="x86_64",
    cpus=2,
    memory_bytes=1 << 30,
    free_bytes=1 << 30,
    clock_low_ns=-1000,
    clock_high_ns=2000,
)


def test_code_in_a_dask_worker_is_light() -> None:
    assert modules_after("import serverless_bench.features.dask.worker").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("worker", "output"),
    [
        (WORKER, []),
        (
            replace(WORKER, distributed="2025.1.0"),
            [f"{NAMED} has distributed 2025.1.0, here is 2026.8.0"],
        ),
        (
            replace(WORKER, sbench="0.0.9", code="other"),
            [f"{NAMED} has sbench 0.0.9, here is {__version__}"],
        ),
        (
            replace(WORKER, code="other"),
            [f"{NAMED} has other code of sbench {__version__}, here is {__version__}"],
        ),
    ],
)
def test_a_worker_that_is_not_like_us_is_named(worker: DaskWorker, output: Sequence[str]) -> None:
    cluster = DaskCluster(scheduler="tcp://s:1", workers=(worker,), distributed="2026.8.0")
    assert list(cluster.problems()) == output


ABOUT = json.loads(describe())
SEEN = {"slots": 1, "clock_low_ns": -1, "clock_high_ns": 1}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_workers_description_is_used() -> None:
    worker = DaskWorker.from_description("tcp://10.0.0.1:40000", json.dumps(ABOUT), **SEEN)
    assert (worker.sbench, worker.code, worker.slots) == (__version__, code_digest(), 1)


@given(st.dictionaries(st.sampled_from([*ABOUT, "address", "more"]), JSON))
def test_a_worker_may_say_anything(changes: dict[str, object]) -> None:
    """It is refused, or all of it is of the right type."""
    about = json.dumps({**ABOUT, **changes})
    with suppress(ExecutorError):
        worker = DaskWorker.from_description("tcp://10.0.0.1:40000", about, **SEEN)
        assert changes.keys() <= ABOUT.keys()
        assert all(type(getattr(worker, name)) in {int, str} for name in changes)


@given(st.text())
def test_a_worker_may_send_any_text(about: str) -> None:
    with pytest.raises(ExecutorError, match="sent an invalid description"):
        DaskWorker.from_description("tcp://10.0.0.1:40000", about, **SEEN)


@given(st.binary())
def test_an_error_that_was_pickled_is_read_and_not_loaded(data: bytes) -> None:
    assert pickled_error(pickle.dumps(ValueError("wrong"))) == "ValueError: wrong"
    assert pickled_error(data)


def test_slots_of_all_workers_count() -> None:
    workers = (WORKER, replace(WORKER, slots=3))
    assert DaskCluster(scheduler="tcp://s:1", workers=workers, distributed="").slots == 5


def test_a_wrong_clock_is_reported_once_per_host() -> None:
    ahead = replace(WORKER, clock_low_ns=3 * NS_PER_S, clock_high_ns=3 * NS_PER_S + 10)
    behind = replace(ahead, host="node2", clock_low_ns=-2 * NS_PER_S, clock_high_ns=-2 * NS_PER_S)
    assert list(_clock_notes([WORKER, ahead, ahead, behind])) == [
        "the clock of node1 is +3.0 s off this machine's; corrected",
        "the clock of node2 is -2.0 s off this machine's; corrected",
    ]


@pytest.mark.parametrize(
    "address", ["tcp://node1:8786", "tls://10.0.0.1:8786", "tcp://[2001:db8::1]:8786"]
)
def test_these_are_addresses(address: str) -> None:
    check_place(address, None)


@each_row("address", ["", "node1:8786", "tcp://node1", "ucx://node1:1", "tcp://me:secret@node1:1"])
def test_invalid_addresses_are_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        check_place(address, None)


def test_a_cluster_in_python_that_has_ended_is_refused() -> None:
    ended = SimpleNamespace(scheduler_address="<Not Connected>", security=None)
    with pytest.raises(UsageError, match="'<Not Connected>' is not an address"):
        dask_scheduler(ended)
