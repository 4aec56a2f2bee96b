"""Conditional writes: raced, with lost responses, and cut off."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf
from threading import Barrier
from typing import Any, Final

from serverless_bench.base.clock import sleep
from serverless_bench.clients.s3_http import completion
from serverless_bench.features.conditional.linearizability import (
    AnsweredRead,
    Fault,
    KeyHistory,
    PossibleWrite,
    violations,
)
from serverless_bench.features.qualify.requests import LostResponse, SentRequest
from serverless_bench.features.qualify.trial import (
    MISSING,
    PAUSE_S,
    BrokenError,
    StoreTrial,
    UnsupportedError,
    VoidError,
)
from serverless_bench.features.qualify.uploads import begin, complete, part

KEY: Final = "contended"
_ROUNDS: Final = 5
_ATTEMPTS: Final = 10
_ABSENT: Final = {"if-none-match": "*"}
_CONFLICT: Final = 409
_REFUSED: Final = frozenset({MISSING, _CONFLICT, 412})
"""Statuses of a write if the condition did not hold."""
_PROBLEMS: Final[Mapping[Fault, str]] = {
    Fault.FORKED: "two writes on the condition of the same version are both acknowledged",
    Fault.PHANTOM: "a write that was refused can be read",
    Fault.STALE: "an older version was read or replaced after a newer one",
}

Parts = dict[str, Any]
"""Arguments of ``StoreTrial.ask`` for a write, without its condition."""
Way = Callable[[StoreTrial, str, int, bytes], Parts]
"""Prepares a write of some bytes by a function."""


def by_put(trial: StoreTrial, name: str, function: int, body: bytes) -> Parts:
    """Prepare a PUT."""
    del trial, name, function
    return {"method": "PUT", "body": body}


def by_copy(trial: StoreTrial, name: str, function: int, body: bytes) -> Parts:
    """Prepare a copy of another object."""
    source = f"{name}-{body.decode()}"
    trial.put(source, body, function)
    return {"method": "PUT", "headers": trial.copy_source(source)}


def by_complete(trial: StoreTrial, name: str, function: int, body: bytes) -> Parts:
    """Prepare the completion of an upload."""
    upload = begin(trial, name, function)
    sent = part(trial, name, upload, 1, body, function)
    return {"method": "POST", "query": upload, "body": completion([sent])}


@dataclass
class _KeyRace:
    """Writes of a key from most functions at once, and GETs in the rest."""

    trial: StoreTrial
    way: Way
    writes: list[PossibleWrite] = field(default_factory=list)
    reads: list[AnsweredRead] = field(default_factory=list)

    def run(self, number: int, base: str | None, condition: Mapping[str, str]) -> None:
        """Let functions write on the condition that ``base`` is there, and check the history."""
        trial, functions = self.trial, self.trial.lab.functions
        writers = range(functions - functions // 4)
        bodies = [b"%d.%d" % (number, function) for function in writers]
        prepared = trial.together(
            lambda function, _: self.way(trial, KEY, function, bodies[function]), writers
        )

        def ask(function: int, gate: Barrier) -> SentRequest:
            if function not in writers:
                return trial.look(KEY, function, gate=gate)
            parts = prepared[function]
            headers = {**parts.pop("headers", {}), **condition}
            return trial.ask(name=KEY, function=function, gate=gate, headers=headers, **parts)

        asked = trial.together(ask)
        attempts = asked[: len(writers)]
        for request in attempts:
            if request.ok or request.is_open:
                end_ns = inf if request.is_open else request.end_ns
                version, own = bodies[request.function].decode(), request.function
                self.writes.append(PossibleWrite(version, base, own, request.start_ns, end_ns))
            elif request.status not in _REFUSED:
                trial.need(request)
        self.reads += [
            AnsweredRead(_version(seen), None, seen.function, seen.start_ns, seen.end_ns)
            for seen in (*asked[len(writers) :], *trial.all_look(KEY))
        ]
        for found in violations(KeyHistory(KEY, self.writes, self.reads), {}):
            raise BrokenError(_PROBLEMS[found.fault])
        may_fail = any(each.ok or each.is_open or each.status == _CONFLICT for each in attempts)
        trial.expect(may_fail, "all writes are refused although their condition held")


def created(trial: StoreTrial, way: Way) -> None:
    """Create a key in several functions at once."""
    _KeyRace(trial, way).run(0, None, _ABSENT)


def replaced(trial: StoreTrial, way: Way) -> int:
    """Replace the same version of a key in several functions at once, several times.

    Returns
    -------
    int
        Number of races.
    """
    race = _KeyRace(trial, way)
    trial.put(KEY, b"base", trial.writer)
    race.writes.append(PossibleWrite("base", None, trial.writer, -inf, -inf))
    for number in range(_ROUNDS):
        current = trial.look(KEY, trial.writer)
        race.run(number, _version(current), {"if-match": _tag(current)})
    return _ROUNDS


def _version(request: SentRequest) -> str | None:
    """Return the version that was read; None if there was no object.

    Raises
    ------
    VoidError
        If it could not be read.
    """
    if not request.ok and request.status != MISSING:
        raise VoidError(f"a GET is answered {request.status} {request.code}")
    return request.text.decode("latin-1") if request.ok else None


def _tag(request: SentRequest) -> str:
    if not request.etag:
        raise UnsupportedError("the store sends no ETag")
    return request.etag


def removed(trial: StoreTrial) -> None:
    """Delete an object on the condition of a version: an older one, raced, and retried."""
    older = trial.put("a", b"older")
    etag = trial.put("a", b"newer")
    refused = trial.ask("DELETE", "a", 1, headers={"if-match": older})
    problem = "a DELETE on the condition of an older version is done"
    if not refused.ok and refused.status not in _REFUSED:
        trial.need(refused)
    trial.expect(not refused.ok and trial.look("a", 2).text == b"newer", problem)
    raced_by = trial.together(
        lambda function, gate: trial.ask(
            "PUT" if function else "DELETE",
            "a",
            function,
            headers={"if-match": etag},
            body=b"put" if function else b"",
            gate=gate,
        ),
        range(2),
    )
    if any(request.is_open for request in raced_by):
        raise VoidError("a DELETE or a PUT in a race is not answered")
    deleted, written = raced_by
    trial.expect(
        not (deleted.ok and written.ok), "a DELETE and a PUT of the same version are both done"
    )
    if not deleted.ok:
        etag = trial.look("a").etag
        trial.ask("DELETE", "a", headers={"if-match": etag}, lost=LostResponse.SENT)
    trial.put("a", b"later", 1)
    trial.ask("DELETE", "a", headers={"if-match": etag})
    trial.all_see("a", b"later", "the retry of a conditional DELETE deletes a later object")


def lost(trial: StoreTrial, *, replaces: bool) -> int:
    """Lose the response to a conditional write, and retry it, with or without another in between.

    Returns
    -------
    int
        Number of lost responses.
    """
    cases = [*product(LostResponse, (False, True))]
    for how, meddled in cases:
        name = f"{how.name}-{meddled}".lower()
        condition = {"if-match": trial.put(name, b"base")} if replaces else _ABSENT
        first = trial.ask("PUT", name, headers=condition, body=b"own", lost=how)
        if how is LostResponse.ANSWERED and not first.is_open:
            trial.need(first)
        if meddled:
            _overwrite(trial, name, b"other")
        again = _retry(trial, name, condition)
        seen = trial.look(name, 2)
        if meddled:
            problem = "a retry after a lost answer overwrites the write of another function"
            trial.expect(not again.ok and seen.text == b"other", problem)
            continue
        problem = "a write that was done is done again when it is retried"
        trial.expect(not (first.ok and again.ok), problem)
        trial.expect(
            seen.text == b"own", "a retry is refused, but the object is not the function's own"
        )
    return len(cases)


def _overwrite(trial: StoreTrial, name: str, body: bytes) -> None:
    """Write an object in another function, on the condition of its version."""
    for _ in range(_ATTEMPTS):
        seen = trial.look(name, 1)
        condition = {"if-match": _tag(seen)} if seen.ok else _ABSENT
        request = trial.ask("PUT", name, 1, headers=condition, body=body)
        if request.ok:
            return
        sleep(PAUSE_S)
    raise VoidError("another function could not write")


def _retry(trial: StoreTrial, name: str, condition: Mapping[str, str]) -> SentRequest:
    for _ in range(_ATTEMPTS):
        request = trial.ask("PUT", name, headers=condition, body=b"own")
        if not request.is_open and request.status != _CONFLICT:
            if not request.ok and request.status not in _REFUSED:
                trial.need(request)
            return request
        sleep(PAUSE_S)
    raise VoidError("a retry is not answered")


def lost_completion(trial: StoreTrial) -> int:
    """Lose the response to the completion of an upload, and retry it before and after a PUT.

    Returns
    -------
    int
        Number of lost responses.
    """
    for how in LostResponse:
        name = how.name.lower()
        upload = begin(trial, name)
        parts = [part(trial, name, upload, 1, b"whole")]
        trial.ask("POST", name, query=upload, body=completion(parts), lost=how)
        again = complete(trial, name, upload, parts)
        if again.is_open:
            raise VoidError("a retried completion is not answered")
        for _ in range(_ATTEMPTS):
            # The first completion may still be under way when the second is refused.
            if again.ok or trial.look(name).ok:
                break
            sleep(PAUSE_S)
        trial.all_see(name, b"whole", "after a retried completion the object is missing")
        trial.put(name, b"later", 1)
        complete(trial, name, upload, parts)
        trial.all_see(name, b"later", "a retried completion overwrites a later object")
    return len(LostResponse)


def cut(trial: StoreTrial) -> int:
    """End the connections of PUTs before the last byte.

    Returns
    -------
    int
        Number of PUTs.
    """
    trial.put("old", b"old")
    for name in ("new", "old"):
        trial.ask("PUT", name, trial.writer, body=b"x" * 20_000, lost=LostResponse.BODY)
    for _ in range(2):
        for name, before in (("new", None), ("old", b"old")):
            problem = "a PUT whose connection ended before its last byte has stored an object"
            trial.all_see(name, before, problem)
    return 2
