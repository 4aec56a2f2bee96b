"""Shuffle: mappers write a partition for each reducer, and reducers read them.

The first functions of a job are its mappers, so that each has started before a reducer can wait
for it. Keys depend neither on the launch of a function nor on its results: a reducer knows them,
and the bytes of every partition, before they exist. ``operation`` waits for them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.features.shuffle.load import Partitions, Reduce, ShuffleLoad
from serverless_bench.job.abilities import Completing, Phase, Phased, Tally, Untimed
from serverless_bench.job.defaults import DEFAULT_MB
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.read_assignment import share
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import MAX_DUE, Load, Stream, Trait, Workload, check_has

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.worker.operation_context import Performer

_HASH_BYTES: Final = 12
_NAME: Final = re.compile(r".*/[0-9a-f]{24}([0-9a-f]{8})\.[0-9]+", re.DOTALL)


class Shuffle(Workload, Phased, Completing, Untimed):
    """``load.mappers`` functions that write, and ``load.reducers`` functions that read."""

    settings = ("threads", "mb", "size", "prefix")
    traits = (
        Trait.CREATES_OBJECTS
        | Trait.READS_OBJECTS
        | Trait.RECEIVES_RESULTS
        | Trait.REPORTS_KEYS
        | Trait.VERIFIES
    )
    load_type = ShuffleLoad
    default_number = 8  # mappers and reducers
    part = "serverless_bench.features.shuffle.part:PART"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kinds of both phases, by their numbers."""
        return {kind: float(count) for kind, count, _ in self.tally(load).rows}

    def functions(self, load: Load) -> int:
        """Return the number of mappers and reducers."""
        load = ShuffleLoad.narrow(load)
        return load.mappers + load.reducers

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Make the size the total of all partitions."""
        size, load = values["size"], values["load"]
        total = DEFAULT_MB * MIB if size is None else size
        return {**values, "size": None, "load": replace(load, total=total)}

    def check(self, job: "JobSpec") -> None:
        """Check that the partitions alone decide what happens, and that none is empty."""
        load = ShuffleLoad.narrow(job.load)
        check_has(job, "total")
        self.check_untimed(job, "shuffle: every partition moves once")
        if job.number != self.functions(load):
            raise wrong(
                "number",
                f"is {job.number}, but there are {self.functions(load)} mappers and reducers",
                hint="leave it out, or make it their sum",
            )
        count = load.mappers * load.reducers
        if not count <= (load.total or 0):
            raise UsageError(
                f"`size` {load.total or 0:,} is too small for {count:,} partitions",
                hint="raise `size`, or lower `mappers` or `reducers`",
                field="size",
            )
        if count > MAX_DUE:
            raise UsageError(
                f"`mappers` times `reducers` are {count:,} partitions, a run may have {MAX_DUE:,}",
                hint="lower `mappers` or `reducers`",
                field="mappers",
            )

    def tally(self, load: Load) -> Tally:
        """Return the operations of both phases; an eager reducer may wait more often."""
        load = ShuffleLoad.narrow(load)
        count, total = load.mappers * load.reducers, load.total or 0
        objects = load.partitions == "objects"
        written = count if objects else load.mappers
        read = OperationKind.GET if objects else OperationKind.GET_RANGE
        waits = load.reducers * min(load.threads, load.mappers)
        if objects and load.reduce == "barrier":
            waits *= min(load.threads, load.reducers)
        puts = [(OperationKind.PUT, written, total)]
        reads = [(OperationKind.WAIT, waits, 0), (read, count, total)]
        # The object of a mapper is complete only when the mapper has ended.
        overlaps = objects and load.reduce == "eager"
        phases = (
            Phase("map", load.mappers, puts),
            Phase("reduce", load.reducers, reads, overlaps=overlaps),
        )
        return Tally((0, 0), [*puts, *reads], 0.0, phases, load.poll)

    def alternatives(self, load: Load) -> Mapping[str, Load]:
        """Return the loads with each layout and each start of the reducers."""
        load = ShuffleLoad.narrow(load)
        return {
            f"{partitions}, {reduce}": replace(load, partitions=partitions, reduce=reduce)
            for partitions in get_args(Partitions)
            for reduce in get_args(Reduce)
        }

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of a mapper's objects."""
        if invocation.index < ShuffleLoad.narrow(invocation.load).mappers:
            yield from (operation.key for operation in _written(invocation))

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the puts of a mapper, or the waits and reads of a reducer."""
        if invocation.index >= ShuffleLoad.narrow(invocation.load).mappers:
            yield from _read(invocation, thread)
            return
        written, threads = enumerate(_written(invocation)), invocation.load.threads
        yield from (operation for number, operation in written if number % threads == thread)

    def performer(self, invocation: "InvocationSpec") -> "Performer | None":
        """Return the waiter of a reducer."""
        load = ShuffleLoad.narrow(invocation.load)
        if invocation.index < load.mappers:
            return None
        from serverless_bench.features.shuffle.operation import Waiter

        return Waiter(load, _awaited(invocation))


def mapper_of(key: str) -> int:
    """Return the index of the mapper that writes an object; -1 for other keys."""
    match = _NAME.fullmatch(key)
    return int(match[1], 16) if match else -1


def _written(invocation: "InvocationSpec") -> Iterator[OperationSpec]:
    """Yield the puts of a mapper: one for each reducer, or one for all."""
    load, mapper = ShuffleLoad.narrow(invocation.load), invocation.index
    for reducer in range(load.reducers if load.partitions == "objects" else 1):
        key, size = _object(invocation, mapper, reducer)
        yield OperationSpec(kind=OperationKind.PUT, key=key, size=size)


def _read(invocation: "InvocationSpec", thread: int) -> Stream:
    """Yield waits for objects, and reads of those that exist, until a wait fails.

    Each reducer starts with another mapper: otherwise all would read the same objects at once.
    """
    load = ShuffleLoad.narrow(invocation.load)
    reducer = invocation.index - load.mappers
    turns = [(reducer + number) % load.mappers for number in range(load.mappers)]
    reads = {read.key: read for read in (_partition(invocation, m, reducer) for m in turns)}
    left = list(reads)[thread :: load.threads]
    all_exist = load.reduce == "barrier" and bool(left)
    for wait in _barrier(invocation) if all_exist else ():
        all_exist = all_exist and (yield wait) is not False
    while left:
        here, ok = {*left}, None
        if not all_exist:
            wait = _wait(invocation, reducer, left)
            ok = yield wait
            here = {*wait.keys}
        for key in left:
            if key in here:
                yield reads[key]
        left = [] if ok is False else [key for key in left if key not in here]


def _awaited(invocation: "InvocationSpec") -> Iterator[str]:
    """Yield all keys that a reducer may wait for."""
    load = ShuffleLoad.narrow(invocation.load)
    for mapper in range(load.mappers):
        yield _object(invocation, mapper, invocation.index - load.mappers)[0]
    for wait in _barrier(invocation):
        yield from wait.keys


def _barrier(invocation: "InvocationSpec") -> Iterator[OperationSpec]:
    """Yield waits for the objects that mappers write last, one for each of their threads."""
    load = ShuffleLoad.narrow(invocation.load)
    count = load.reducers if load.partitions == "objects" else 1
    for reducer in range(max(0, count - load.threads), count):
        keys = [_object(invocation, mapper, reducer)[0] for mapper in range(load.mappers)]
        yield _wait(invocation, reducer, keys)


def _wait(invocation: "InvocationSpec", reducer: int, keys: Sequence[str]) -> OperationSpec:
    """Return a wait for objects in the folder of a reducer."""
    folder = _folder(invocation, reducer)
    return OperationSpec(kind=OperationKind.WAIT, key=folder, size=None, keys=tuple(keys))


def _partition(invocation: "InvocationSpec", mapper: int, reducer: int) -> OperationSpec:
    """Return the read of a partition."""
    load = ShuffleLoad.narrow(invocation.load)
    key, size = _object(invocation, mapper, reducer)
    if load.partitions == "objects":
        return OperationSpec(kind=OperationKind.GET, key=key, size=size)
    first, _ = _place(load, mapper, 0)
    start, length = _place(load, mapper, reducer)
    return OperationSpec(
        kind=OperationKind.GET_RANGE, key=key, size=size, offset=start - first, length=length
    )


def _place(load: ShuffleLoad, mapper: int, reducer: int) -> tuple[int, int]:
    """Return start and length of a partition, as if all were one file."""
    return share(load.total or 0, mapper * load.reducers + reducer, load.mappers * load.reducers)


def _object(invocation: "InvocationSpec", mapper: int, reducer: int) -> tuple[str, int]:
    """Return key and size of the object that holds a partition."""
    import hashlib

    load = ShuffleLoad.narrow(invocation.load)
    first, size = _place(load, mapper, reducer)
    if load.partitions == "ranges":
        reducer, (first, _) = 0, _place(load, mapper, 0)
        size = sum(_place(load, mapper, load.reducers - 1)) - first
    name = f"{invocation.run_id}/{mapper}/{reducer}"
    digits = hashlib.blake2b(name.encode(), digest_size=_HASH_BYTES).hexdigest()
    return f"{_folder(invocation, reducer)}{digits}{mapper:08x}.{size}", size


def _folder(invocation: "InvocationSpec", reducer: int) -> str:
    """Return the folder that a reducer lists."""
    folder = f"{invocation.target.prefix}{invocation.run_id}/shuffle/"
    load = ShuffleLoad.narrow(invocation.load)
    return f"{folder}{reducer}/" if load.partitions == "objects" else folder


WORKLOAD = Shuffle()
