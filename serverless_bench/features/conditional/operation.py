"""Perform conditional writes on shared keys, and record all versions read or written.

A commit lasts from its first read to the acknowledgement of its write. A rejected write (412, or
409 for two simultaneous writes) is a conflict: after a back-off, the key is read a second time. A
write without a response, or with a 5xx response, may have been performed: it is recorded as
unknown, and the next read shows whether the commit is done.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final, NamedTuple, cast

from serverless_bench.base.errors import BadRequest, BadResponse, Corrupt, NotFound, OperationError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import ConditionalClient
from serverless_bench.features.conditional.shared_keys import (
    MAX_BYTES,
    Pattern,
    Version,
    decode,
    encode,
    foreign,
    manifest_key,
)
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.rows import AccessRow, Act, Ending
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.operation_context import (
    DONE,
    OperationContext,
    OperationResult,
    Performer,
)

MOST_CONFLICTS: Final = 10_000
"""Most conflicts of one commit; a store that rejects more writes does so for other reasons."""
_CAP_S: Final = 1.0
"""The longest back-off."""
_DOUBLINGS: Final = 16
_MOST_ETAG: Final = 256
_REFUSALS: Final = {409: Ending.CONFLICT, 412: Ending.REFUSED}
_SERVER_ERRORS: Final = 500
_NOT_IMPLEMENTED: Final = 501
_TAKEN: Final = OperationResult(count=0)


@dataclass(slots=True)
class Contender(Performer):
    """State shared by the threads of one function that writes to the shared keys."""

    run_id: str
    name: str
    """Index and launch of the function, the prefix of its tokens."""
    pattern: Pattern
    backoff_s: float
    heads: dict[str, int] = field(default_factory=dict)
    """The last known manifest of each log."""
    _numbers: "count[int]" = field(default_factory=count)

    def perform(self, context: OperationContext) -> OperationResult:
        """Perform one operation on shared keys.

        Raises
        ------
        OperationError
            If it failed; the write may still have been performed.
        """
        return _PERFORM[context.spec.kind](_Commit(context, self))

    def token(self) -> str:
        """Return the token of a new version; threads may call it at the same time."""
        return f"{self.name}.{next(self._numbers)}"

    def saw(self, log: str, number: int) -> None:
        """Note that a log has a manifest; a race between threads only causes an extra read."""
        self.heads[log] = max(self.heads.get(log, 0), number)


class _Found(NamedTuple):
    """The state of a key."""

    version: Version
    etag: str


class _Commit:
    """One operation: its requests, its conflicts, and the versions it may have written."""

    def __init__(self, context: OperationContext, contender: Contender) -> None:
        self.contender = contender
        self.key = context.spec.key
        self._accesses: list[AccessRow] = []
        context.accesses = self._accesses
        self._retrier = context.retrier
        self._client = cast("ConditionalClient", context.retrier.client)
        self.unknown: set[str] = set()
        """Versions of this commit that may have been written."""
        self._conflicts = self._failures = self._wait_ns = 0

    def read(self, key: str) -> _Found | None:
        """Return the state of a key; None if the object does not exist.

        Raises
        ------
        OperationError
            If it cannot be read, or was not written by a function of the run.
        """
        sink = MemorySink(MAX_BYTES)

        def get(meter: Meter) -> str:
            # Discard the bytes of a failed attempt.
            sink.data.clear()
            return self._client.get_tagged(key, sink, meter)

        wait_ns, self._wait_ns = self._wait_ns, 0
        try:
            etag = self._retrier.run("get", get, wait_ns=wait_ns)
        except NotFound:
            self._note(key, Act.READ, None, None, Ending.DONE)
            return None
        data = bytes(sink.data)
        version = decode(self.contender.run_id, data)
        if version is None:
            self._note(key, Act.READ, foreign(data), None, Ending.DONE)
            raise Corrupt(f"{key} holds bytes that no function of this run wrote")
        self._note(key, Act.READ, version.token, version.base, Ending.DONE)
        # The entity tag is sent back in a header.
        if not 0 < len(etag) <= _MOST_ETAG or not (etag.isascii() and etag.isprintable()):
            raise BadResponse("the response has no entity tag, or an invalid one")
        return _Found(version, etag)

    def is_mine(self, state: _Found) -> bool:
        """Return whether the version is from this commit, or replaced a version of this commit."""
        return not self.unknown.isdisjoint((state.version.token, state.version.base))

    def write(self, key: str, over: _Found | None, value: int) -> Ending:
        """Write the next version, and return the outcome.

        Parameters
        ----------
        key
            Key to write.
        over
            State to replace; None if the key must not exist.
        value
            Value of the version.

        Raises
        ------
        OperationError
            If the store rejects it for a reason other than a conflict, or too often does not
            respond.
        """
        version = Version(self.contender.token(), over and over.version.token, value)
        source = MemorySource(encode(self.contender.run_id, version))
        put = partial(self._client.put_if, key, source, etag=over and over.etag)
        wait_ns, self._wait_ns = self._wait_ns, 0
        ending, failure = Ending.DONE, None
        try:
            self._retrier.run("put", lambda meter: put(exchange=meter), wait_ns=wait_ns, once=True)
        except OperationError as exc:
            ending, failure = _ending_of(exc), exc
        except BaseException:
            self._note(key, Act.WRITE, version.token, version.base, Ending.UNKNOWN)
            raise
        self._note(key, Act.WRITE, version.token, version.base, ending)
        if ending is Ending.UNKNOWN:
            self.unknown.add(version.token)
        if failure is not None and ending not in _REFUSALS.values():
            # The outcome is unknown: wait as before any further attempt.
            self._failures += 1
            is_over = self._failures > self._retrier.retries
            if ending is Ending.FAILED or not failure.retryable or is_over:
                raise failure
            self._wait_ns = self._retrier.wait_before(self._failures, failure)
        return ending

    def _note(
        self,
        key: str,
        act: Act,
        version: str | None,
        base: str | None,
        ending: Ending,
    ) -> None:
        meter, _ = self._retrier.done[-1]
        instants = (meter.start_ns, meter.end_ns)
        self._accesses.append((key, act, version, base, *instants, ending))

    def back_off(self) -> None:
        """Wait after a conflict, with full jitter; the limit grows with the number of conflicts.

        Raises
        ------
        OperationError
            If there were too many, or no time is left.
        """
        self._conflicts += 1
        if self._conflicts >= MOST_CONFLICTS:
            raise BadRequest(f"the store refused {self._conflicts} writes of one commit")
        longest_s = self.contender.backoff_s * 2 ** min(self._conflicts - 1, _DOUBLINGS)
        wait_s = self._retrier.rng.uniform(0, min(_CAP_S, longest_s))
        self._wait_ns = round(wait_s * NS_PER_S)
        self._retrier.pause(wait_s)


def _ending_of(failure: OperationError) -> Ending:
    """Return the outcome of a failed write."""
    status = failure.status
    if status in _REFUSALS:
        return _REFUSALS[status]
    certain = status is not None and (status < _SERVER_ERRORS or status == _NOT_IMPLEMENTED)
    return Ending.FAILED if certain else Ending.UNKNOWN


def _increment(commit: _Commit) -> OperationResult:
    while True:
        state = commit.read(commit.key)
        if state is not None and commit.is_mine(state):
            return DONE
        ending = commit.write(commit.key, state, 1 if state is None else state.version.value + 1)
        if ending is Ending.DONE:
            return DONE
        if ending is not Ending.UNKNOWN:
            commit.back_off()


def _claim(commit: _Commit) -> OperationResult:
    """Write a key that must not exist; ``count`` is 0 if another function has it."""
    while True:
        ending = commit.write(commit.key, None, 1)
        if ending is Ending.DONE:
            return DONE
        if ending is Ending.CONFLICT:
            commit.back_off()
        elif ending is Ending.REFUSED and not commit.unknown:
            return _TAKEN
        else:
            # The object may be from an earlier write of this commit.
            state = commit.read(commit.key)
            if state is not None:
                return DONE if commit.is_mine(state) else _TAKEN


def _append(commit: _Commit) -> OperationResult:
    """Follow the log to its end, and write there; after a conflict, continue from that number.

    It never skips a number that this commit may have written, even if other threads know more.
    """
    contender = commit.contender
    number = contender.heads.get(commit.key, 0) + 1
    while True:
        key = manifest_key(commit.key, number)
        state = commit.read(key)
        if state is None:
            ending = commit.write(key, None, number)
            if ending in {Ending.REFUSED, Ending.CONFLICT}:
                commit.back_off()
            if ending is not Ending.DONE:
                continue
        contender.saw(commit.key, number)
        if state is None or commit.is_mine(state):
            return DONE
        number += 1


def _observe(commit: _Commit) -> OperationResult:
    """Read a key, or a log from the last known manifest to its end."""
    contender, key = commit.contender, commit.key
    if contender.pattern is not Pattern.APPEND:
        commit.read(key)
        return DONE
    number = max(1, contender.heads.get(key, 1))
    while commit.read(manifest_key(key, number)) is not None:
        contender.saw(key, number)
        number += 1
    return DONE


_PERFORM: Final = {
    OperationKind.INCREMENT: _increment,
    OperationKind.CLAIM: _claim,
    OperationKind.APPEND: _append,
    OperationKind.OBSERVE: _observe,
}
