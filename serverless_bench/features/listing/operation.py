"""Perform a listing of a prefix, and compare its pages with the keys that were written."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, cast

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.features.listing.load import ListLoad
from serverless_bench.features.listing.tree import Tree
from serverless_bench.features.versions.listing import ObjectVersion, VersionsClient
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.rows import Act, Ending
from serverless_bench.worker.object_io import pages
from serverless_bench.worker.operation_context import (
    OperationContext,
    OperationResult,
    Performer,
)

_MOST_NAMED: Final = 1000
"""Most problems of a listing that a record names."""
_MOST_SKIPPED: Final = 50_000
"""Most skipped keys that may still come late, so that memory has a bound."""


class PageComparison:
    """The keys of a listing so far, against those expected.

    Parameters
    ----------
    expected
        Keys in order; None if they are not known, so that only the order is compared.
    """

    def __init__(self, expected: Iterable[str] | None) -> None:
        self._expected = None if expected is None else iter(expected)
        self._next = next(self._expected, None) if self._expected else None
        self._last = ""
        self._skipped: set[str] = set()
        self.problems: list[tuple[str, str]] = []
        """Keys, and what is wrong with them."""

    def take(self, keys: Iterable[str]) -> None:
        """Compare the next keys of the listing."""
        for key in keys:
            if key > self._last:
                self._skip_to(key)
                self._last = key
            elif key in self._skipped:
                self._skipped.discard(key)
                self._note(key, "out of order")
            elif self._expected is None and key != self._last:
                self._note(key, "out of order")
            else:
                self._note(key, "double")

    def finish(self) -> None:
        """Note the keys that did not come."""
        self._skip_to(None)
        for key in sorted(self._skipped):
            self._note(key, "missing")

    def _skip_to(self, key: str | None) -> None:
        """Skip the expected keys before a key, or all that remain."""
        if self._expected is None:
            return
        while self._next is not None and (key is None or self._next < key):
            if len(self._skipped) < _MOST_SKIPPED:
                self._skipped.add(self._next)
            else:
                self._note(self._next, "missing")
            self._next = next(self._expected, None)
        if key is not None and self._next == key:
            self._next = next(self._expected, None)
        elif key is not None:
            self._note(key, "unexpected")

    def _note(self, key: str, problem: str) -> None:
        if len(self.problems) < _MOST_NAMED:
            self.problems.append((key, problem))


class Lister(Performer):
    """Lists the prefixes of a function."""

    def __init__(self, invocation: InvocationSpec) -> None:
        self._given = invocation.reads_given
        self._tree = Tree(invocation, ListLoad.narrow(invocation.load))
        self._leaves = {self._tree.folder(leaf): leaf for leaf in self._shared()}

    def _shared(self) -> range:
        return range(0) if self._given else self._tree.shared()

    def perform(self, context: OperationContext) -> OperationResult:
        """List a prefix, page by page.

        Raises
        ------
        OperationError
            If a page could not be listed, or the listing does not end.
        """
        comparison, count = PageComparison(self._expected(context.spec.key)), 0
        try:
            for keys in self._pages(context):
                start_ns = monotonic_ns()
                comparison.take(keys)
                context.add_payload(monotonic_ns() - start_ns)
                count += len(keys)
            comparison.finish()
        finally:
            now_ns = monotonic_ns()
            context.accesses = [
                (key, Act.READ, problem, None, now_ns, now_ns, Ending.DONE)
                for key, problem in comparison.problems
            ]
        return OperationResult(count=count)

    def _expected(self, prefix: str) -> Iterator[str] | None:
        """Return the keys with a prefix; None if they are unknown."""
        if self._given:
            return None
        tree = self._tree
        every = range(tree.load.parts * tree.leaves)
        leaves = every if prefix == tree.root else (self._leaves[prefix],)
        return (key for leaf in leaves for key, _ in tree.keys(leaf))

    def _pages(self, context: OperationContext) -> Iterator[Sequence[str]]:
        prefix, retrier = context.spec.key, context.retrier
        if not self._tree.load.versions:
            client = retrier.client
            yield from pages(
                lambda after: retrier.run("list", partial(client.list_keys, prefix, after))
            )
            return
        marker, last = None, ObjectVersion("", "")
        while True:
            # The client of the job is the thin one, which that of versions extends.
            thin = cast("VersionsClient", retrier.client)
            call = partial(VersionsClient.list_versions, thin, prefix, marker)
            found, marker = retrier.run("list_versions", call)
            # Older versions follow the current one.
            pairs = zip(chain([last], found), found, strict=False)
            yield [v.key for before, v in pairs if v.key != before.key or v == before]
            last = found[-1] if found else last
            if marker is None:
                return
