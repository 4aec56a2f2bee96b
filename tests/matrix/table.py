"""The fault matrix: every fault, and what it is on every executor."""

from collections.abc import Mapping
from functools import partial

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
    misbehaves,
    record_refused,
    refused,
    runs_out_of_memory,
    twice,
    walled,
    workers_expired,
)

NO_QUEUE = "no queue: a task goes over a socket to a process"
NO_SERVICE = "no service: the pool has as many workers as were asked for"
BY_SOCKET = "no such request: the record comes over the socket"

MATRIX: Mapping[str, Mapping[str, Cell | str]] = {
    "function raises": dict.fromkeys(
        ("local", "lithops", "lambda"), partial(misbehaves, "fault-raise")
    ),
    "function exits": dict.fromkeys(
        ("local", "lithops", "lambda"), partial(misbehaves, "fault-exit")
    ),
    "function is OOM-killed": dict.fromkeys(("local", "lithops", "lambda"), runs_out_of_memory),
    "function hangs past its deadline": dict.fromkeys(
        ("local", "lithops", "lambda"), partial(misbehaves, "fault-hang")
    ),
    "429 at 30 %": {"local": NO_SERVICE, "lithops": refused, "lambda": refused},
    "concurrency wall (2 at once)": {"local": NO_SERVICE, "lithops": walled, "lambda": walled},
    "connection cut after accept": {"local": NO_QUEUE, "lithops": cut, "lambda": cut},
    "event delivered twice": {"local": NO_QUEUE, "lithops": twice, "lambda": twice},
    "event an hour late": {"local": NO_QUEUE, "lithops": late, "lambda": late},
    "event dropped": {"local": NO_QUEUE, "lithops": dropped, "lambda": dropped},
    "record put fails for a while": {
        "local": BY_SOCKET,
        **dict.fromkeys(("lithops", "lambda"), partial(record_refused, times=2)),
    },
    "record put fails for ever": {
        "local": BY_SOCKET,
        **dict.fromkeys(("lithops", "lambda"), partial(record_refused, times=None)),
    },
    "driver killed with -9, at random": dict.fromkeys(("local", "lithops", "lambda"), killed),
    "credentials expire for a while": {
        "local": "a store's request is not repeated with what it has refused: next line",
        "lithops": expired_a_while,
        "lambda": expired_a_while,
    },
    "credentials expire for ever": {
        "local": workers_expired,
        "lithops": expired_for_ever,
        "lambda": expired_for_ever,
    },
    "driver interrupted, cleaned up at once": {
        "local": "functions end with their driver",
        **dict.fromkeys(("lithops", "lambda"), interrupted),
    },
    "driver's disk full": dict.fromkeys(("local", "lithops", "lambda"), disk_full),
}
"""Rows and columns of the table in docs/faults.md; text is why there is no such cell."""


def cells(executor: str) -> dict[str, Cell]:
    """Return the cells of an executor that exist."""
    row = {fault: columns[executor] for fault, columns in MATRIX.items()}
    return {fault: cell for fault, cell in row.items() if not isinstance(cell, str)}
