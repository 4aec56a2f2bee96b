"""Where the objects of an experiment go: stores that live as long as it runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

from serverless_bench.driver.location import check_meant
from serverless_bench.driver.target import embedded_target
from serverless_bench.errors import UsageError
from serverless_bench.job.target import Target
from serverless_bench.plugins import TOOLS
from serverless_bench.studies.definition import Settings
from serverless_bench.studies.settings import inner

_NOWHERE: Final = Target(bucket="none", endpoint_url="http://127.0.0.1:9")
"""For arrays in files, which need none."""
_DIRECTORY: Final = "any--use1-az4--x-s3"
"""Where the loopback store has directory buckets."""


class Stores:
    """Opens each store once, when the first cell needs it.

    Parameters
    ----------
    stack
        Closes them all.
    given
        The user's own target; None for the embedded store.
    """

    def __init__(self, stack: ExitStack, given: Target | None) -> None:
        self._stack = stack
        self._given = given
        self._open: dict[tuple[object, ...], Target] = {}

    def target(self, settings: Settings) -> Target:
        """Return where a cell's objects go.

        Raises
        ------
        StoreError
            If the store does not start.
        UsageError
            If it is the embedded one, and the environment names another.
        """
        store = str(settings.get("store", "embedded"))
        serve = inner(settings, "serve") if store == "loopback" else {}
        name = (store, *sorted((n, str(v)) for n, v in serve.items()))
        if name not in self._open:
            self._open[name] = self._opened(store, serve)
        return self._open[name]

    def keeps_nothing(self, target: Target) -> bool:
        """Tell whether a target is a loopback store of ours."""
        return any(
            store[0] == "loopback" and one.endpoint_url == target.endpoint_url
            for store, one in self._open.items()
        )

    def _opened(self, store: str, serve: Settings) -> Target:
        if store == "files":
            return _NOWHERE
        if store == "loopback":
            url = self._stack.enter_context(_serving(serve, own=self._given is None))
            bucket = _DIRECTORY if "express" in serve else "any"
            return Target(bucket=bucket, endpoint_url=url)
        if self._given is not None:
            return self._given
        target = self._stack.enter_context(embedded_target())
        check_meant(target)
        return target


def _serving(serve: Settings, *, own: bool) -> AbstractContextManager[str]:
    """Run a loopback store in a process of its own for the length of a block; yield its URL."""
    flags = {"check": "none", **serve}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    known = all(map(os.environ.get, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")))
    served: Callable[..., AbstractContextManager[str]] = TOOLS.load("loopback")
    return served(*arguments, credentials=own and not known)


@contextmanager
def on_processors(count: object) -> Iterator[None]:
    """Let this thread, and the processes that it starts, use so many processors.

    Stores that run already keep all of them.

    Raises
    ------
    UsageError
        If there are fewer.
    """
    if not isinstance(count, int) or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    if not 1 <= count <= len(before):
        raise UsageError(f"cpus is {count}, and this process may use {len(before)}")
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
