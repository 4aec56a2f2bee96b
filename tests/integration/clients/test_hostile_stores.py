"""What every client makes of stores that are wrong in one way: bounded, and never a success."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from serverless_bench.clients import CLIENTS
from tests.fault_server import FaultServer
from tests.fuzz.watched import MOST_BYTES, Ended, Nursery, nursery
from tests.hostile import OPERATIONS, Cell, Seen, order, parse
from tests.hostile_server import HARMLESS, WRONG_LISTS, WRONGS, Drips, hostile
from tests.network import bundle_of, certificate, server_context
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


@pytest.mark.parametrize("client", ["awscrt", "boto3", "minio"])
def test_other_clients_bound_the_most_telling(
    child: Nursery, endpoints: Mapping[str, str], tmp_path: Path, client: str
) -> None:
    wanted = [
        cell
        for cell in cells(client, endpoints, *TELLING)
        if cell.operation in {"put", "get", "list"}
    ]
    check(wanted, perform(child, tmp_path, wanted, 4))


CERTIFICATES: Final[Mapping[str, dict[str, Any]]] = {
    "of nobody who is trusted": {},
    "of another host": {"address": "127.0.0.2"},
    "of last week": {"since_days": 9, "days": -2},
}
"""Certificates that are none for this server; the first is not in the user's bundle either."""


QUICK: Final = ("boto3", "minio", "wire")
"""Clients that need no process for each cell."""


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.full, id=name)
        for name in CLIENTS
    ],
)
def test_certificates_that_are_wrong_are_refused(
    child: Nursery, tmp_path: Path, client: str
) -> None:
    good = certificate(tmp_path)
    errors = dict[str, str | None]()
    for name, changed in {"good": {}, **CERTIFICATES}.items():
        directory = tmp_path / name.replace(" ", "-")
        directory.mkdir()
        theirs = good if name == "good" else certificate(directory, **changed)
        # What is wrong with one of them is not that nobody trusts it.
        trusted = bundle_of(theirs if changed else good)
        with FaultServer(context=server_context(theirs)) as server:
            ended = child(
                tmp_path,
                order([Cell(name, client, "get", server.endpoint_url, 20.0, 10.0)], 1),
                environment={**KEYS, "AWS_CA_BUNDLE": str(trusted)},
                limit_s=LIMIT_S,
                call="tests.hostile:main",
            )
        assert ended.code == 0, ended.err
        (seen,) = parse(ended.out)
        errors[name] = seen.error
    assert errors.pop("good") is None
    assert set(errors.values()) <= {"connection_lost", "timed_out"}, errors


@pytest.mark.parametrize("start", [b"", b"\x16\x03\x03\x40\x00\x02\x00\x40"])
def test_a_handshake_that_drips_ends_with_the_deadline(
    child: Nursery, tmp_path: Path, start: bytes
) -> None:
    with Drips(start) as server:
        ended = child(
            tmp_path,
            order([Cell("drips", "wire", "get", f"https://127.0.0.1:{server.port}")], 1),
            environment=KEYS,
            limit_s=LIMIT_S,
            call="tests.hostile:main",
        )
    (seen,) = parse(ended.out)
    assert seen.error in {"deadline", "timed_out", "connection_lost"}
    assert seen.seconds < ENDS_S
