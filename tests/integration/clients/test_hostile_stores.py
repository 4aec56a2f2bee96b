"""What every client makes of stores that are wrong in one way: bounded, and never a success."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from serverless_bench.clients import CLIENTS
from tests.fuzz.watched import MOST_BYTES, Ended, Nursery, nursery
from tests.hostile import OPERATIONS, Cell, Seen, order, parse
from tests.hostile_server import HARMLESS, WRONG_LISTS, WRONGS, hostile
from tests.servers import KEYS

LIMIT_S = 120.0
"""Of a child with many cells; each has a deadline of one second."""
ENDS_S = 10.0
"""Of one cell: its deadline, and what a busy machine takes."""

TELLING = (
    "headers without end",
    "a length of 2**60",
    "chunks without end",
    "an error text without end",
    "a billion laughs",
    "a redirect to itself",
    "a reset in the body",
    "another protocol",
)
"""What is tried with every client each time; the rest of the table is for `make full`."""


@pytest.fixture(scope="module")
def child() -> Iterator[Nursery]:
    with nursery("tests.hostile") as found:
        yield found


@pytest.fixture(scope="module")
def endpoints() -> Iterator[Mapping[str, str]]:
    """Where each server of the table is."""
    with ExitStack() as stack:
        yield {
            wrong: stack.enter_context(hostile(answer)).endpoint_url
            for wrong, answer in {**WRONGS, **HARMLESS, **WRONG_LISTS}.items()
        }


def cells(client: str, endpoints: Mapping[str, str], *wrongs: str) -> list[Cell]:
    """Return every operation that the client offers, against each of these servers."""
    offered = [name for name in OPERATIONS if name in CLIENTS.load(client).info.operations]
    return [
        Cell(wrong, client, operation, endpoints[wrong])
        for wrong in wrongs
        for operation in (["list"] if wrong in WRONG_LISTS else offered)
        # A page of keys is more than these servers know.
        if not (operation == "list" and wrong in HARMLESS)
    ]


def perform(child: Nursery, directory: Path, wanted: list[Cell], threads: int) -> Ended:
    return child(
        directory,
        order(wanted, threads),
        environment=KEYS,
        limit_s=LIMIT_S,
        call="tests.hostile:main",
    )


def check(wanted: list[Cell], ended: Ended) -> list[Seen]:
    """Check that each of the cells ended well, and that none took more memory than it may."""
    assert ended.code == 0, ended.err[-2000:]
    assert ended.peak_bytes < MOST_BYTES, f"{ended.peak_bytes >> 20} MiB"
    seen = parse(ended.out)
    assert len(seen) == len(wanted)
    assert [one for one in seen if one.error == "bug"] == []
    assert [one for one in seen if one.error is None and one.wrong not in HARMLESS] == []
    assert [one for one in seen if one.seconds > ENDS_S] == []
    return seen


def test_the_thin_client_bounds_all_of_them(
    child: Nursery, endpoints: Mapping[str, str], tmp_path: Path
) -> None:
    wanted = cells("wire", endpoints, *endpoints)
    seen = check(wanted, perform(child, tmp_path, wanted, 16))
    assert all(one.detail.isprintable() for one in seen)


@pytest.mark.parametrize("client", ["boto3", "minio"])
def test_other_clients_bound_the_most_telling(
    child: Nursery, endpoints: Mapping[str, str], tmp_path: Path, client: str
) -> None:
    wanted = [
        cell
        for cell in cells(client, endpoints, *TELLING)
        if cell.operation in {"put", "get", "list"}
    ]
    check(wanted, perform(child, tmp_path, wanted, 4))
