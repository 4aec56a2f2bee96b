"""Trials of a guarantee: requests of several functions in a folder, all kept."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TextIO, TypeVar
from urllib.parse import quote, unquote_plus

from serverless_bench.base.clock import sleep
from serverless_bench.base.errors import UsageError
from serverless_bench.clients.s3_http import (
    NO_HEADERS,
    first_text,
    parse_xml,
    sorted_query,
    texts,
)
from serverless_bench.features.qualify.requests import (
    AskingClient,
    LostResponse,
    LyingClient,
    SentRequest,
)
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.files import failing, make_directories

LEDGER: Final = "keys.jsonl"
_TRANSFER: Final = Transfer(block_size=64 << 10, timeout=10.0, retries=0)
_GATE_S: Final = 15.0
_ATTEMPTS: Final = 5
"""Attempts of requests that change nothing, and of deletions at the end."""
PAUSE_S: Final = 0.05
MISSING: Final = 404
_DENIED: Final = frozenset({401, 403})
BUSY: Final = frozenset({429, 503})
_PASSING: Final = frozenset({"ExpiredToken", "IncompleteBody", "RequestTimeout"})
"""Codes of S3 with status 400 for a request that may succeed later."""

T = TypeVar("T")


def _answered(request: SentRequest) -> str:
    return f"{request.method} is answered {request.status or ''} {request.code}".strip()


@contextmanager
def opened_ledger(root: Path) -> Iterator[TextIO]:
    """Make the directory of a result, and open its ledger: a key in JSON on each line.

    Raises
    ------
    UsageError
        If there is a result.
    ArchiveError
        If it cannot be written.
    """
    if root.exists():
        raise UsageError(f"{root} exists", hint="--name another")
    with failing(f"cannot write {root}"):
        make_directories(root)
        file = (root / LEDGER).open("x", encoding="utf-8")
    with file:
        yield file


class BrokenError(Exception):
    """The store has broken the guarantee, as the requests of the trial show."""


class UnsupportedError(Exception):
    """The store rejects the requests that the guarantee is about."""


class VoidError(Exception):
    """The trial tells nothing, for example because a response is missing."""


class KeyPage(NamedTuple):
    """A page of a listing."""

    names: list[str]
    """Keys without the folder."""
    sizes: list[str]
    token: str
    """Token of the next page; empty on the last."""


@dataclass(kw_only=True)
class Lab:
    """A bucket at its endpoints, functions that send requests, and the ledger of keys.

    Parameters
    ----------
    targets
        The bucket by endpoint, with the prefix of all keys.
    functions
        Number of functions; they take turns at the endpoints.
    ledger
        File that gets each key before the object is written.
    """

    targets: Sequence[Target]
    functions: int
    ledger: TextIO
    keys: dict[str, None] = field(default_factory=dict)
    """Keys that may have been written."""
    uploads: dict[str, str] = field(default_factory=dict)
    """Keys by the id of an upload in parts."""
    requests: dict[str, int] = field(default_factory=dict)
    """Number of requests by method, listings as ``LIST``."""

    def __post_init__(self) -> None:
        self.prefix = self.targets[0].prefix
        self.bucket = self.targets[0].bucket
        self.clients = [AskingClient(target, _TRANSFER) for target in self.targets]
        signed = replace(self.targets[0], client_option=(("payload_signing", "sha256"),))
        self.liar = LyingClient(signed, _TRANSFER)
        self.pool = ThreadPoolExecutor(self.functions)
        self._numbers = count()
        self._counting = threading.Lock()

    def trial(self) -> "StoreTrial":
        """Return a trial with a new folder."""
        number = next(self._numbers)
        return StoreTrial(self, f"{self.prefix}{number:05}/", number % self.functions)

    def send(
        self, request: SentRequest, query: str, begin: Callable[[], object], *, lies: bool = False
    ) -> None:
        """Send a request, counted, and after its key is in the ledger."""
        with self._counting:
            kind = request.method if request.key or request.method != "GET" else "LIST"
            self.requests[kind] = self.requests.get(kind, 0) + 1
            if request.key and request.method in {"PUT", "POST"} and request.key not in self.keys:
                self.keys[request.key] = None
                self.ledger.write(f"{json.dumps(request.key)}\n")
                self.ledger.flush()
        target = request.function % len(self.clients)
        request.endpoint = self.targets[target].endpoint_url
        (self.liar if lies else self.clients[target]).ask(request, query, begin)

    def close(self) -> int:
        """Delete everything in the ledger, and return how many keys could not be deleted."""
        trial = StoreTrial(self, "")
        for upload_id, key in self.uploads.items():
            trial.ask("DELETE", key, query=f"uploadId={quote(upload_id, safe='')}")
        left = sum(self.pool.map(trial.is_left, [*self.keys]))
        self.pool.shutdown()
        for client in (*self.clients, self.liar):
            client.close()
        return left


@dataclass
class StoreTrial:
    """The requests of one try."""

    lab: Lab
    folder: str
    writer: int = 0
    """Number of a function; another one in the next trial."""
    requests: list[SentRequest] = field(default_factory=list)

    def ask(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        name: str | None,
        function: int = 0,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        lost: LostResponse | None = None,
        gate: threading.Barrier | None = None,
        lies: bool = False,
    ) -> SentRequest:
        """Send a request for an object of this folder, or for the bucket, and return it.

        Parameters
        ----------
        method, name, query, headers, body, lost
            The request; without a name it is for the bucket.
        function
            Number of the function that sends it.
        gate
            Lets requests of several functions leave at the same time.
        lies
            Whether the signature is for another body.
        """
        request = SentRequest(
            function=function,
            method=method,
            key="" if name is None else self.folder + name,
            headers=headers,
            body=body,
            lost=lost,
        )

        def begin() -> None:
            if gate is not None:
                with suppress(threading.BrokenBarrierError):
                    gate.wait(_GATE_S)

        self.lab.send(request, query, begin, lies=lies)
        if gate is not None:
            # A request that failed before it was ready must not keep the rest waiting.
            gate.abort()
        self.requests.append(request)
        return request

    def need(self, request: SentRequest) -> SentRequest:
        """Return a request that succeeded.

        Raises
        ------
        VoidError
            If it is not known whether the store acted, or access was denied.
        UnsupportedError
            If the store rejected it.
        """
        if request.ok:
            return request
        is_passing = request.status in {*_DENIED, *BUSY} or request.code in _PASSING
        if request.is_open or is_passing:
            raise VoidError(_answered(request))
        raise UnsupportedError(_answered(request))

    def copy_source(self, name: str) -> dict[str, str]:
        """Return the header that makes a PUT a copy of an object of this folder."""
        path = quote(f"{self.lab.bucket}/{self.folder}{name}", safe="/~")
        return {"x-amz-copy-source": path}

    def put(self, name: str, body: bytes, function: int = 0) -> str:
        """Write an object and return its entity tag."""
        return self.need(self.ask("PUT", name, function, body=body)).etag

    def look(
        self,
        name: str | None,
        function: int = 0,
        *,
        method: str = "GET",
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        gate: threading.Barrier | None = None,
    ) -> SentRequest:
        """Read something, again after a passing failure.

        Raises
        ------
        VoidError
            If the store did not respond, or denies access, also in place of 404.
        """
        for _ in range(_ATTEMPTS):
            request = self.ask(method, name, function, query=query, headers=headers, gate=gate)
            if request.status in _DENIED:
                break
            if not request.is_open and request.status not in BUSY:
                return request
            gate = None
            sleep(PAUSE_S)
        raise VoidError(_answered(request))

    def all_look(self, name: str) -> list[SentRequest]:
        """Return the responses to GETs of all functions at the same time."""
        return self.together(lambda function, gate: self.look(name, function, gate=gate))

    def all_see(self, name: str, body: bytes | None, problem: str) -> None:
        """Check that all functions read these bytes, or with None that there is no object.

        Raises
        ------
        BrokenError
            If a function sees something else.
        """
        for seen in self.all_look(name):
            is_missing = seen.status == MISSING
            self.expect(is_missing if body is None else seen.ok and seen.text == body, problem)

    def together(
        self, call: Callable[[int, threading.Barrier], T], functions: Iterable[int] | None = None
    ) -> list[T]:
        """Call something in all functions, or in some, with a gate that they share."""
        chosen = [*(range(self.lab.functions) if functions is None else functions)]
        gate = threading.Barrier(len(chosen))
        return list(self.lab.pool.map(lambda function: call(function, gate), chosen))

    def page(self, function: int = 0, *, encoding: str = "url", **wanted: str) -> KeyPage:
        """Return a page of the listing of this folder.

        Parameters
        ----------
        function, encoding
            Number of the function, and the encoding of keys that it asks for; empty for none.
        wanted
            Further parameters, such as ``max_keys``; names are those of this folder.
        """
        query = {"list-type": "2", "prefix": self.folder, "encoding-type": encoding}
        query |= {name.replace("_", "-"): value for name, value in wanted.items()}
        if "start-after" in query:
            query["start-after"] = self.folder + query["start-after"]
        wanted = {name: value for name, value in query.items() if value}
        request = self.need(self.look(None, function, query=sorted_query(wanted)))
        root = parse_xml(request.text)
        if root is None:
            raise BrokenError("a listing is no XML document")
        keys = texts(root, "Key")
        if "url" in texts(root, "EncodingType"):
            keys = [unquote_plus(key) for key in keys]
        names = [key.removeprefix(self.folder) for key in keys]
        return KeyPage(names, texts(root, "Size"), first_text(root, "NextContinuationToken"))

    def is_left(self, key: str) -> bool:
        """Delete a key, and return whether that failed."""
        answers = (self.ask("DELETE", key) for _ in range(_ATTEMPTS))
        return not any(answer.ok or answer.status == MISSING for answer in answers)

    def expect(self, ok: object, problem: str) -> None:
        """Check a property.

        Raises
        ------
        BrokenError
            If it does not hold.
        """
        if not ok:
            raise BrokenError(problem)
