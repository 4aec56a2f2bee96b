"""Checks of records that anybody may have put into the store."""

import subprocess
import sys
from typing import Any

import orjson
import pytest

from serverless_bench.executors.base import read_record
from serverless_bench.rundir.record import InvocationRecord, Lost
from tests.data.runs import operation, record
from tests.tables import each_row


def sent(**changed: Any) -> dict[str, Any]:
    """Return a record as a worker sends it, with other values in its first put."""
    data = orjson.loads(orjson.dumps(record(0, [operation(0)]).to_json()))
    operations = data["operations"]
    for name, value in changed.items():
        if name in operations:
            operations[name] = [value] * len(operations[name])
        else:
            data[name] = value
    return dict(data)


def test_a_record_as_workers_send_it_is_taken() -> None:
    found = read_record(orjson.dumps(sent()), 0, 0)
    assert isinstance(found, InvocationRecord)


def test_records_may_arrive_in_many_threads_at_once() -> None:
    # A race that is lost ends the process.
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from serverless_bench.rundir import received
from tests.unit.rundir.test_received import sent
sys.setswitchinterval(1e-6)
data, together = sent(), Barrier(8)
def take(_):
    together.wait()
    return received.record_of(data).index
with ThreadPoolExecutor(8) as threads:
    for _ in range(30):
        received._record_type.cache_clear()
        assert [*threads.map(take, range(8))] == [0] * 8
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@each_row(
    ("name", "value"),
    [
        ("key", ["a", "list"]),
        ("key", "a line\nof its own"),
        ("key", "\x1b]0;owned\x07"),
        pytest.param("key", "k" * 5000, id="key-long"),
        ("bytes", "12"),
        ("bytes", 1.5),
        ("bytes", 2**63),
        ("size", {}),
        ("error", 7),
        ("warmup", None),
        ("start_ns", None),
        ("run_id", 3),
        ("worker_id", "a\rb"),
        ("cpu_user_s", "fast"),
        ("cold_start", 1),
        ("launch", 1),
        ("machine", ["x86_64"]),
    ],
    ids=str,
)
def test_an_invalid_value_makes_a_loss(name: str, value: Any) -> None:
    found = read_record(orjson.dumps(sent(**{name: value})), 0, 0)
    assert isinstance(found, Lost)
    assert found.cause.startswith("unreadable record: ")
    assert len(found.cause) <= 500


def test_a_record_of_another_function_makes_a_loss() -> None:
    found = read_record(orjson.dumps(sent()), 10**12, 0)
    assert isinstance(found, Lost)
    assert "it belongs to launch 0 of function 0" in found.cause


def test_rows_of_an_operation_that_there_is_not_make_a_loss() -> None:
    data = sent()
    data["attempts"]["operation"][0] = 99
    found = read_record(orjson.dumps(data), 0, 0)
    assert isinstance(found, Lost)
    assert "attempts refers to an operation that does not exist" in found.cause
