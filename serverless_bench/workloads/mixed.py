"""Operations of several kinds by weight, on objects that are created and deleted.

Threads do not share objects. Each thread has the objects that it prepares, the same number of
places for new objects, and, if the mix has copies, a place for the copy of each of these. The keys
are therefore known in advance, however long the run takes, and each read knows the expected bytes:
an overwrite increments the object's generation, and a copy holds the bytes of its source.

Without a size of new objects, the objects are those given by key, which a mix may not change.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.job.abilities import Continuing, Endless
from serverless_bench.job.keys import listed
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import (
    NEW_OBJECTS,
    PACED,
    Appearance,
    Load,
    Stream,
    Trait,
    Workload,
    check_has,
)

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec

AT_ONCE: Final = 10
"""Objects per deletion of many."""
_GENERATIONS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Object:
    """A place for an object, and the bytes that it holds or will hold."""

    number: int
    key: str
    size: int
    generation: int = 0
    content: str | None = None
    """Key of the original, if it is a copy."""
    exists: bool = False
    """Whether sbench did not write it, so that its bytes are unknown."""

    def operation(self, kind: OperationKind) -> OperationSpec:
        return OperationSpec(
            kind=kind,
            key=self.key,
            size=None if self.exists else self.size,
            generation=self.generation,
            content=self.content,
        )

    def next(self) -> "_Object":
        return replace(self, generation=(self.generation + 1) % _GENERATIONS)


class Mixed(Workload, Endless, Continuing):
    """The mix of ``load.mix``, on ``objects`` prepared objects."""

    settings = (*PACED, *NEW_OBJECTS, "mix", "operations", "range_size")
    traits = (
        Trait.NEEDS_SIZE
        | Trait.CREATES_OBJECTS
        | Trait.READS_OBJECTS
        | Trait.RECEIVES_RESULTS
        | Trait.TAKES_EXISTING
    )
    look = Appearance(hue="purple")
    default_number = 4
    default_objects = 16

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the mix."""
        return {OperationKind(name): weight for name, weight in load.mix}

    def without_end(self, load: Load) -> str:
        """Return the phrase for a mix, which never ends by itself."""
        return "a mix"

    def check(self, job: "JobSpec") -> None:
        """Check that there are at least as many objects as threads, which do not share them."""
        check_has(job, "mix")
        if job.load.threads > job.objects:
            raise UsageError(
                f"`threads` {job.load.threads} need as many objects, but there are {job.objects}",
                hint="threads do not share objects: raise `objects`",
                field="threads",
            )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of all places."""
        copies = any(name == OperationKind.COPY for name, _ in invocation.load.mix)
        for number in range(0 if invocation.reads_given else 2 * invocation.objects):
            place = _place(invocation, number)
            yield place.key
            if copies:
                yield _copy_place(invocation, place).key

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the puts of the initial objects."""
        for number in () if invocation.reads_given else _mine(invocation, thread):
            yield _place(invocation, number).operation(OperationKind.PUT)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield one round: ``operations`` operations if set, else one for each object."""
        yield from next(self.rounds(invocation, thread))

    def rounds(self, invocation: "InvocationSpec", thread: int) -> Iterator[Stream]:
        """Yield rounds; each continues with the objects left by the round before."""
        pool, load = _ThreadObjects(invocation, thread), invocation.load
        turns = range(thread, load.operations or invocation.objects, load.threads)
        while True:
            yield pool.turns(len(turns))


class _ThreadObjects:
    """The objects of one thread.

    Parameters
    ----------
    invocation, thread
        Determine the objects.
    """

    def __init__(self, invocation: "InvocationSpec", thread: int) -> None:
        self._invocation = invocation
        self._rng = random.Random(f"{invocation.seed}/{thread}")
        numbers = _mine(invocation, thread)
        self._live = [_place(invocation, number) for number in numbers]
        free = () if invocation.reads_given else numbers
        self._free = [_place(invocation, invocation.objects + number) for number in free]
        mix = [(OperationKind(name), weight) for name, weight in invocation.load.mix]
        self._kinds = [kind for kind, _ in mix]
        self._weights = [weight for _, weight in mix]

    def turns(self, number: int) -> Stream:
        """Yield ``number`` operations, and note the result of each."""
        for _ in range(number):
            yield from self._turn()

    def _turn(self) -> Stream:
        (kind,) = self._rng.choices(self._kinds, self._weights)
        if not self._live and kind is not OperationKind.LIST:
            # All objects are deleted, so put one first.
            kind = OperationKind.PUT
        match kind:
            case OperationKind.PUT:
                yield from self._put()
            case OperationKind.DELETE | OperationKind.DELETE_MANY:
                yield from self._delete(kind)
            case OperationKind.COPY:
                yield from self._copy()
            case OperationKind.LIST:
                yield OperationSpec(kind=kind, key=self._invocation.target.prefix, size=None)
            case OperationKind.GET_RANGE:
                yield self._range()
            case _:
                yield self._rng.choice(self._live).operation(kind)

    def _take(self) -> _Object:
        """Return a random live object, and remove it from the list."""
        at = self._rng.randrange(len(self._live))
        self._live[at], self._live[-1] = self._live[-1], self._live[at]
        return self._live.pop()

    def _overwritten(self) -> _Object:
        """Return a random live object that is not a copy, in its next generation."""
        # There is at least one: without a free place, none of them was deleted.
        chosen = self._rng.choice(
            [candidate for candidate in self._live if candidate.content is None]
        )
        self._live.remove(chosen)
        return chosen.next()

    def _put(self) -> Stream:
        target = self._free.pop() if self._free else self._overwritten()
        ok = yield target.operation(OperationKind.PUT)
        # After a failed put, it is unknown which bytes the store holds.
        if ok:
            self._live.append(target)
        else:
            self._free.append(target.next())

    def _delete(self, kind: OperationKind) -> Stream:
        many = kind is OperationKind.DELETE_MANY
        deleted = [self._take() for _ in range(min(AT_ONCE if many else 1, len(self._live)))]
        operation = deleted[0].operation(kind)
        if many:
            operation = replace(operation, keys=tuple(item.key for item in deleted))
        yield operation
        # The place of a copy is derived from its source, so it is not freed.
        self._free += [item.next() for item in deleted if item.content is None]

    def _copy(self) -> Stream:
        sources = [candidate for candidate in self._live if candidate.content is None]
        if not sources:
            yield from self._put()
            return
        source = self._rng.choice(sources)
        copy = _copy_place(self._invocation, source)
        self._live = [candidate for candidate in self._live if candidate.key != copy.key]
        ok = yield replace(copy.operation(OperationKind.COPY), keys=(source.key,))
        if ok:
            self._live.append(copy)

    def _range(self) -> OperationSpec:
        chosen = self._rng.choice(self._live)
        length = min(self._invocation.load.range_size, chosen.size)
        offset = self._rng.randrange(chosen.size - length + 1)
        return replace(chosen.operation(OperationKind.GET_RANGE), offset=offset, length=length)


def _mine(invocation: "InvocationSpec", thread: int) -> range:
    return range(thread, invocation.objects, invocation.load.threads)


def _place(invocation: "InvocationSpec", number: int) -> _Object:
    if invocation.reads_given:
        key, size = listed(invocation.keys[number])
        return _Object(number, key, size or 0, exists=True)
    planned = planned_object(invocation, number)
    return _Object(number, planned.key, planned.size)


def _copy_place(invocation: "InvocationSpec", source: _Object) -> _Object:
    """Return the place of an object's copy: the key declares the size, so each has just one."""
    number = 2 * invocation.objects + source.number
    planned = planned_object(invocation, number, size=source.size)
    return _Object(number, planned.key, planned.size, source.generation, source.key)


WORKLOAD = Mixed()
