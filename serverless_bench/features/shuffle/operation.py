"""Wait for the objects of other functions, by listing their folder."""

import threading
from collections.abc import Iterable, Sequence
from functools import partial

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import NotFound
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.shuffle.load import ShuffleLoad
from serverless_bench.worker.object_io import pages
from serverless_bench.worker.operation_context import (
    OperationContext,
    OperationResult,
    Performer,
)


class Waiter(Performer):
    """Waits for the partitions of a reducer; its threads share what they have seen.

    Parameters
    ----------
    load
        Load of the function.
    expected
        All keys that it may wait for; it keeps no other key of a listing.
    """

    def __init__(self, load: ShuffleLoad, expected: Iterable[str]) -> None:
        self._load = load
        self._expected = frozenset(expected)
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._gave_up = False

    def perform(self, context: OperationContext) -> OperationResult:
        """Wait until objects exist; afterwards the keys of the operation are those that do.

        Raises
        ------
        NotFound
            If no further object has appeared for as long as the reducer is patient.
        OperationError
            If a request failed.
        """
        awaited = context.spec.keys
        # Only one thread lists; the others find what it has seen.
        with self._lock:
            try:
                self._wait(context, awaited)
            finally:
                context.spec.keys = tuple(key for key in awaited if key in self._seen)
        return OperationResult(count=len(context.spec.keys))

    def _wait(self, context: OperationContext, awaited: Sequence[str]) -> None:
        patience_ns = round(self._load.patience * NS_PER_S)
        until_ns = monotonic_ns() + patience_ns
        while self._lacking(awaited):
            for page in pages(partial(_page, context)):
                before = len(self._seen)
                self._seen |= self._expected.intersection(page)
                context.retrier.look()
                now_ns = monotonic_ns()
                if len(self._seen) > before:
                    until_ns = now_ns + patience_ns
                elif now_ns > until_ns:
                    break
            missing = self._lacking(awaited)
            if not missing:
                return
            # Later waits look once more, and do not wait again.
            if self._gave_up or monotonic_ns() > until_ns:
                self._gave_up = True
                raise NotFound(f"{missing} of {len(awaited)} objects do not exist")
            context.retrier.pause(self._load.poll)

    def _lacking(self, awaited: Sequence[str]) -> int:
        """Return how many objects are missing; 0 if those that exist suffice to go on."""
        missing = sum(key not in self._seen for key in awaited)
        return 0 if self._load.reduce == "eager" and missing < len(awaited) else missing


def _page(context: OperationContext, after: str) -> tuple[list[str], bool]:
    """Return a page of the folder, and whether there are further pages."""
    retrier = context.retrier
    keys, more = retrier.run("list", partial(retrier.client.list_keys, context.spec.key, after))
    return list(keys), more
