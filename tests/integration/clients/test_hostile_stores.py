"""Every client with stores that have one kind of fault: bounded, and never a success."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from serverless_bench.clients import CLIENTS
from tests.commands.processes import PATIENCE_S
from tests.contract.declared import info_of
from tests.fuzz.watched import MOST_BYTES, Ended, Nursery, nursery
from tests.stores.faulty import FaultServer
from tests.stores.hostile import HARMLESS, WRONG_LISTS, WRONGS, Drips, hostile
from tests.stores.hostile_answers import OPERATIONS, Cell, Seen, order, parse
from tests.stores.network import bundle_of, certificate, server_context
from tests.stores.servers import KEYS

LIMIT_S = PATIENCE_S
KILLED_S = 30.0
"""For a child with one cell, before it is killed: most libraries need seconds to start."""
ENDS_S = 60.0
"""For one cell, whose deadline is a second, while others keep the CPUs: the answers that have
no end go on for longer."""

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
"""Cells that are tried with every client each time; `make full` tries the rest of the table."""


@pytest.fixture(scope="module")
def child() -> Iterator[Nursery]:
    with nursery("tests.stores.hostile_answers", "tests.stores.warm", "minio") as found:
        yield found


@pytest.fixture(scope="module")
def endpoints() -> Iterator[Mapping[str, str]]:
    """Address of each server of the table."""
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
        call="tests.stores.hostile_answers:main",
    )


def check(wanted: list[Cell], ended: Ended, *, bounded: bool = True) -> list[Seen]:
    """Check that each of the cells ended well, within its limit of memory."""
    assert ended.code == 0, ended.err[-2000:]
    assert not bounded or ended.peak_bytes < MOST_BYTES, f"{ended.peak_bytes >> 20} MiB"
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
    bounded = "takes_all" not in info_of(client).quirks
    check(wanted, perform(child, tmp_path, wanted, 4), bounded=bounded)


CERTIFICATES: Final[Mapping[str, dict[str, Any]]] = {
    "of nobody who is trusted": {},
    "of another host": {"address": "127.0.0.2"},
    "of last week": {"since_days": 9, "days": -2},
}
"""Invalid certificates for this server; the first is also missing in the user's bundle."""


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
        # A certificate must be refused for its own fault, not because its issuer is not trusted.
        trusted = bundle_of(theirs if changed else good)
        with FaultServer(context=server_context(theirs)) as server:
            ended = child(
                tmp_path,
                order([Cell(name, client, "get", server.endpoint_url, PATIENCE_S, 100.0)], 1),
                environment={**KEYS, "AWS_CA_BUNDLE": str(trusted)},
                limit_s=LIMIT_S,
                call="tests.stores.hostile_answers:main",
            )
        assert ended.code == 0, ended.err
        (seen,) = parse(ended.out)
        errors[name] = seen.error
    assert errors.pop("good") is None
    assert set(errors.values()) == {"certificate"}, errors


BOUNDED: Final = frozenset({"awscrt", "wire"})
"""Clients of which no cell exceeds its deadline, or uses unlimited memory."""
HEADS: Final = frozenset(
    {
        "100 Continue for ever",
        "100 Continue now and then",
        "a body that drips",
        "a head that drips",
        "chunks that drip",
        "trailers without end",
    }
)
"""Answers that Python's ``http.client`` reads endlessly, without control by its caller."""
TOLERANT: Final[Mapping[str, frozenset[str]]] = {
    "boto3": frozenset({"a close in the head"}),
    "minio": frozenset(
        {
            "a close in the head",
            "a length in superscript",
            "a length of 5,000 digits",
            "a negative length",
        }
    ),
    "obstore": frozenset(
        {
            "a bomb inside of 200",
            "a page of somebody else",
            "an error inside of 200",
            "another document",
        }
    ),
    "s3dlio": frozenset(
        {
            "a listing cut short",
            "a page of somebody else",
            "keys of elsewhere",
            "two million elements",
        }
    ),
    "s3torchconnector": frozenset({"a page of somebody else", "half an error inside of 200"}),
}
"""Answers that a library accepts without further information: docs/clients.md."""


def problem(cell: Cell, ended: Ended) -> str:
    """Return the fault in the end of a cell; empty if there is none."""
    seen = parse(ended.out)
    if not seen:
        waits = cell.client not in QUICK or cell.wrong in HEADS
        return "" if waits and cell.client not in BOUNDED else f"no end, or {ended.code}"
    if cell.client in {*QUICK, *BOUNDED} and ended.peak_bytes >= MOST_BYTES:
        return f"{ended.peak_bytes >> 20} MiB"
    tolerated = {*HARMLESS, *TOLERANT.get(cell.client, ())}
    if seen[0].error == "bug" or (seen[0].error is None and cell.wrong not in tolerated):
        return f"{seen[0].error}: {seen[0].detail}"
    return ""


@pytest.mark.full
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_against_every_server(
    endpoints: Mapping[str, str], tmp_path: Path, client: str
) -> None:
    """Every cell has a process of its own: some libraries wait for ever, or end the process."""
    wanted = iter(cells(client, endpoints, *endpoints))
    turn = threading.Lock()
    tried = list[tuple[Cell, Ended]]()

    def work(_: int) -> None:
        with nursery("tests.stores.hostile_answers") as own:
            while True:
                with turn:
                    cell = next(wanted, None)
                if cell is None:
                    return
                ended = own(
                    tmp_path,
                    order([cell], 1),
                    environment=KEYS,
                    limit_s=KILLED_S,
                    call="tests.stores.hostile_answers:main",
                )
                tried.append((cell, ended))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [(cell, found) for cell, ended in tried if (found := problem(cell, ended))] == []


@pytest.mark.parametrize(
    ("start", "proxy"),
    [(b"", False), (b"\x16\x03\x03\x40\x00\x02\x00\x40", False), (b"HTTP/1.1 200 ", True)],
    ids=["at once", "in a record", "of a proxy"],
)
def test_a_handshake_that_drips_ends_with_the_deadline(
    child: Nursery, tmp_path: Path, start: bytes, *, proxy: bool
) -> None:
    with Drips(start) as server:
        there = f"https://127.0.0.1:{server.port}"
        ended = child(
            tmp_path,
            order([Cell("drips", "wire", "get", "https://store:443" if proxy else there)], 1),
            environment={**KEYS, "https_proxy": f"http://127.0.0.1:{server.port}"}
            if proxy
            else KEYS,
            limit_s=LIMIT_S,
            call="tests.stores.hostile_answers:main",
        )
    (seen,) = parse(ended.out)
    assert seen.error in {"deadline", "timeout", "connection_error"}
    assert seen.seconds < ENDS_S
