"""List the keys of a tree from many functions, and compare every page with the tree.

Each function first writes its part, unless the tree is that of an earlier run. ``tree`` has the
keys, and ``operation`` performs the listings: an operation is that of a whole prefix.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.features.listing.load import ListLoad
from serverless_bench.features.listing.tree import Tree
from serverless_bench.job.abilities import Completing, Dealt, Pages, Paging
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.keys import listed
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import PACED, Appearance, Load, Stream, Trait, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.worker.operation_context import Performer

PAGE: Final = 1000
"""Most keys of a page."""


class ListTree(Workload, Completing, Dealt, Paging):
    """A listing of each leaf of a tree, or of all keys in one sequence."""

    settings = (*PACED, "mb", "size", "sizes", "prefix")
    traits = Trait.CREATES_OBJECTS | Trait.TAKES_EXISTING
    load_type = ListLoad
    look = Appearance(past_tense="listed")
    default_number = 4
    default_objects = 1000
    part = "serverless_bench.features.listing.part:PART"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return listings alone."""
        return {OperationKind.LIST_ALL: 1.0}

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with those of a run that wrote the tree, or with small objects."""
        load, options = values["load"], values["options"]
        if "existing" in options:
            return values
        if load.tree is None:
            small = values["size"] is None and load.sizes is None
            if 1 < values["number"] <= values["concurrency"]:
                # All functions write before any of them lists.
                options = options | {"barrier": options.get("barrier") or 1.0}
            return values | {"size": 1 if small else values["size"], "options": options}
        from serverless_bench.rundir.files import refuse_cleaned
        from serverless_bench.rundir.listing import DEFAULT_ROOT, find_run
        from serverless_bench.rundir.run import load_run

        run = load_run(find_run(load.tree, DEFAULT_ROOT), detail=False)
        refuse_cleaned(run.path)
        wrote = fitting(run.job)
        shape = {name: getattr(wrote, name) for name in ("depth", "breadth", "sizes")}
        return values | {
            "load": replace(load, tree=run.run_id, parts=run.job.number, **shape),
            "target": replace(values["target"], prefix=run.job.target.prefix),
            "objects": run.job.objects,
            "size": run.job.size,
        }

    def dealt(self, load: Load, index: int, number: int) -> Load:
        """Return the load with the numbers of functions that wrote, and that list."""
        load = ListLoad.narrow(load)
        return replace(load, parts=load.parts or number, listers=number)

    def check(self, job: "JobSpec") -> None:
        """Check that keys have an order, and that the client can list versions."""
        load = ListLoad.narrow(job.load)
        if is_directory_bucket(job.target.bucket):
            raise wrong("bucket", "is a directory bucket, whose listings have no order")
        client = job.target.client
        if load.versions and not CLIENTS.load(client).info.versions:
            raise wrong("versions", f"does not work with `client` {client}", hint="wire lists them")
        together = load.by == "sequence" and not load.tree and not job.reads_given
        if together and job.warm_up and job.number > 1:
            raise wrong(
                "warm_up",
                "lists before the other functions have written",
                hint="leave it out, or name a `tree`",
            )
        if together and job.number > job.concurrency:
            raise UsageError(
                f"the {job.number:,} functions write before any of them lists, got `concurrency`"
                f" {job.concurrency:,}",
                hint=f"`number` {job.concurrency}, or a higher `concurrency`",
                field="concurrency",
            )
        if load.breadth**load.depth > job.objects and not job.reads_given:
            raise UsageError(
                f"`breadth` {load.breadth} and `depth` {load.depth} make"
                f" {load.breadth**load.depth:,} folders for {job.objects:,} objects",
                hint="raise `objects`",
                field="objects",
            )

    def pages(self, job: "JobSpec") -> Pages:
        """Return the objects that a function writes, and the pages that it lists."""
        load = ListLoad.narrow(self.dealt(job.load, 0, job.number))
        keys, leaves = load.parts * job.objects, load.breadth**load.depth
        count = -(-keys // PAGE) * load.threads
        if load.by == "prefixes":
            count = load.parts * leaves * -(-job.objects // leaves // PAGE) / load.listers
        return Pages(0 if load.tree else job.objects, count)

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys that the invocation writes."""
        yield from (key for key, _ in _written(invocation))

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the puts of a thread."""
        for key, size in islice(_written(invocation), thread, None, invocation.load.threads):
            yield OperationSpec(kind=OperationKind.PUT, key=key, size=size)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the listings of a thread."""
        for prefix in _prefixes(invocation, thread):
            yield OperationSpec(kind=OperationKind.LIST_ALL, key=prefix, size=None)

    def performer(self, invocation: "InvocationSpec") -> "Performer":
        """Return the lister of a function."""
        from serverless_bench.features.listing.operation import Lister

        return Lister(invocation)


def fitting(job: "JobSpec") -> ListLoad:
    """Return the load of a job that wrote a tree.

    Raises
    ------
    UsageError
        If it wrote none.
    """
    load = job.load
    if not isinstance(load, ListLoad) or load.tree or job.reads_given:
        raise wrong("tree", f"{job.name} wrote no tree", hint="a run of sbench list that wrote one")
    return load


def _written(invocation: "InvocationSpec") -> Iterator[tuple[str, int]]:
    """Yield keys and sizes of the objects that an invocation writes."""
    tree = Tree(invocation, ListLoad.narrow(invocation.load))
    for leaf in () if invocation.reads_given else tree.written():
        yield from tree.keys(leaf)


def _prefixes(invocation: "InvocationSpec", thread: int) -> Iterable[str]:
    """Return the prefixes that a thread lists."""
    tree, threads = Tree(invocation, ListLoad.narrow(invocation.load)), invocation.load.threads
    if invocation.reads_given:
        return [listed(line)[0] for line in dict.fromkeys(invocation.keys)][thread::threads]
    if tree.load.by == "sequence":
        return [tree.root]
    return map(tree.folder, tree.shared()[thread::threads])


WORKLOAD = ListTree()
