"""Run the cells of an executor side by side, and judge them one by one."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.matrix.cells import OWN_HOST, Cell, killed, killed_in_each_phase
from tests.matrix.dask_cells import OWN_CLUSTER
from tests.matrix.rig import Result
from tests.matrix.rigs import RIGS
from tests.matrix.table import cells
from tests.stores.servers import Server

Results = dict[str, "Future[Result]"]

HOSTS: Final = 2
"""Hosts with faults: the number of concurrent cells that need one."""


def shared(executor: str, tried: Iterable[Cell]) -> int:
    """Return how many servers some cells have in turns: hosts with faults, or one Dask cluster."""
    if executor == "dask":
        return int(any(cell not in OWN_CLUSTER for cell in tried))
    return HOSTS if any(cell in OWN_HOST for cell in tried) else 0


@contextmanager
def suite(executor: str, store: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    """Yield a future result for every cell that a test of the module requests."""
    items = [item for item in request.session.items if item.path == request.path]
    asked = [item.callspec.params["fault"] for item in items if isinstance(item, pytest.Function)]
    directory = request.getfixturevalue("tmp_path_factory").mktemp("matrix")
    tried = {fault: cell for fault, cell in cells(executor).items() if fault in asked}
    with (
        RIGS[executor](store, directory, shared(executor, tried.values())) as rig,
        ThreadPoolExecutor(rig.concurrency) as threads,
    ):
        results = {fault: threads.submit(cell, rig, fault) for fault, cell in tried.items()}
        # pytest changes os.environ between tests, which fails in a thread that reads all of it.
        # No limit: each wait in a cell has one.
        wait(results.values())
        yield results


def judge(results: Results, fault: str) -> Result:
    """Return the result of a cell, which is complete."""
    result = results[fault].result()
    result.save()
    assert result.orphans == 0
    assert result.recovered == result.requested
    return result


def a_kill_in_each_phase(
    executor: str, store: Server, directory: Path, phases: Sequence[str]
) -> None:
    """Kill the driver once in each of these phases of a run, and resume each run."""
    with RIGS[executor](store, directory, 0) as rig:
        result = killed_in_each_phase(rig, phases)
    assert (result.recovered, result.orphans) == (result.requested, 0)


def a_hundred_kills(executor: str, store: Server, directory: Path) -> None:
    """Kill and resume far more often, at other moments than a cell does."""
    with RIGS[executor](store, directory, shared(executor, [killed])) as rig:
        result = killed(rig, "driver killed with -9, at random, 100 times", kills=100, seed=2)
    result.save()
    assert (result.recovered, result.orphans) == (result.requested, 0)
