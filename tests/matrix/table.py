"""The fault matrix: every fault, and its meaning on every executor."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from tests.matrix.cells import (
    Cell,
    cut,
    disk_full,
    dropped,
    expired_a_while,
    expired_for_ever,
    interrupted,
    killed,
    late,
    may_not_claim,
    misbehaves,
    record_refused,
    refused,
    runs_out_of_memory,
    twice,
    walled,
    workers_expired,
)
from tests.matrix.dask_cells import clock_is_off, scheduler_killed, worker_hangs, worker_killed

NO_QUEUE = "no queue: a task goes over a socket to a process"
NO_SERVICE = "no service: the pool has as many workers as were asked for"
BY_SOCKET = "no such request: the record comes over the socket"
NO_EVENT = "no queue: an event is an object, and which worker has it the claim says"
NO_DELIVERY = "no queue: a task goes over a connection, and which one runs the claim says"
NO_LIMIT = "no service: no more tasks are out than there are slots"
NO_CLUSTER = "no cluster: no scheduler, no workers of another's"
ONE_CLOCK = "its functions have the clock of this machine here"
NOT_INVOKED_AT_ALL = "no service: a worker takes events when it is free"
FAR: Final = ("lithops", "lambda", "workers", "dask")
"""Executors whose functions outlive the driver."""
ALL: Final = ("local", *FAR)


def of_a_queue(cell: Cell) -> Mapping[str, Cell | str]:
    """Return the row of a fault that only a queue of events has."""
    return {
        "local": NO_QUEUE,
        "lithops": cell,
        "lambda": cell,
        "workers": NO_EVENT,
        "dask": NO_DELIVERY,
    }


def of_a_service(cell: Cell) -> Mapping[str, Cell | str]:
    """Return the row of a fault that only a service has that invokes functions."""
    return {
        "local": NO_SERVICE,
        "lithops": cell,
        "lambda": cell,
        "workers": NOT_INVOKED_AT_ALL,
        "dask": NO_LIMIT,
    }


def of_a_cluster(cell: Cell, otherwise: str = NO_CLUSTER) -> Mapping[str, Cell | str]:
    """Return the row of a fault that only a cluster has."""
    return {**dict.fromkeys(ALL, otherwise), "dask": cell}


MATRIX: Mapping[str, Mapping[str, Cell | str]] = {
    "function raises": dict.fromkeys(ALL, partial(misbehaves, "fault-raise")),
    "function exits": dict.fromkeys(ALL, partial(misbehaves, "fault-exit")),
    "function is OOM-killed": dict.fromkeys(ALL, runs_out_of_memory),
    "function hangs past its deadline": dict.fromkeys(ALL, partial(misbehaves, "fault-hang")),
    "429 at 30 %": of_a_service(refused),
    "concurrency wall (2 at once)": of_a_service(walled),
    "connection cut after accept": of_a_queue(cut),
    "event delivered twice": of_a_queue(twice),
    "event an hour late": of_a_queue(late),
    "event dropped": of_a_queue(dropped),
    "record put fails for a while": {
        "local": BY_SOCKET,
        **dict.fromkeys(FAR, partial(record_refused, times=2)),
    },
    "record put fails for ever": {
        "local": BY_SOCKET,
        **dict.fromkeys(FAR, partial(record_refused, times=None)),
    },
    "functions may not claim": {
        "local": "no claims: a task goes over a socket to a process",
        "lithops": may_not_claim,
        "lambda": may_not_claim,
        "workers": "another worker may: this one ends, and says so",
        "dask": may_not_claim,
    },
    "driver killed with -9, at random": dict.fromkeys(ALL, killed),
    "credentials expire for a while": {
        "local": "a store's request is not repeated with what it has refused: next line",
        **dict.fromkeys(FAR, expired_a_while),
    },
    "credentials expire for ever": {
        "local": workers_expired,
        **dict.fromkeys(FAR, expired_for_ever),
    },
    "driver interrupted, cleaned up at once": {
        "local": "functions end with their driver",
        **dict.fromkeys(FAR, interrupted),
    },
    "driver's disk full": dict.fromkeys(ALL, disk_full),
    "Dask worker killed with -9": of_a_cluster(worker_killed),
    "Dask worker hangs": of_a_cluster(worker_hangs),
    "hosts' clocks 3 s ahead and behind": of_a_cluster(clock_is_off, ONE_CLOCK),
    "Dask scheduler killed with -9": of_a_cluster(scheduler_killed),
}
"""Rows and columns of the table in docs/faults.md; a text gives the reason for a missing cell."""


def cells(executor: str) -> dict[str, Cell]:
    """Return the cells of an executor that exist."""
    row = {fault: columns[executor] for fault, columns in MATRIX.items()}
    return {fault: cell for fault, cell in row.items() if not isinstance(cell, str)}
