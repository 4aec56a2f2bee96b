"""Write arrays through an array library, append to them, or read them back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

from serverless_bench.features.array.load import (
    METADATA,
    ArrayLoad,
    ArraySpec,
    array_bytes,
    array_keys,
    is_smaller_level,
    objects_of,
    shape_at,
)
from serverless_bench.job.abilities import Recognizing, ThroughLibrary
from serverless_bench.job.keys import declared_size, parent_key
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import Appearance, Load, Stream, Trait, Workload, check_has

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.rundir.run import Run
    from serverless_bench.worker.object_io import Head
    from serverless_bench.worker.operation_context import Performer

_BLOSC_HEAD: Final = 16
_REQUESTS: Final = {
    OperationKind.WRITE_ARRAY: "put",
    OperationKind.APPEND_ARRAY: "put",
    OperationKind.READ_ARRAY: "get",
}


class Array(Workload, ThroughLibrary, Recognizing):
    """One operation for each array, or for each append to the invocation's only array."""

    settings = ("prefix", "key_file", "read_times")
    traits = Trait.CREATES_OBJECTS | Trait.DERIVES_KEYS
    look = Appearance(hue="orange")
    load_type = ArrayLoad
    default_number = None
    source = "array write"
    not_deployed = "the deployed function has no array library"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kind of its operation."""
        array = ArrayLoad.narrow(load).array
        return {} if array is None else {_kind(array): 1.0}

    def reads(self, load: Load) -> bool:
        """Return whether it reads arrays."""
        return OperationKind.READ_ARRAY in self.kinds(load)

    def pieces(self, load: Load) -> tuple[int, int] | None:
        """Return the number of chunks, or shards, of an array and its size in bytes."""
        array = ArrayLoad.narrow(load).array
        if array is None:
            return None
        size = array_bytes(array)
        return objects_of(array, _kind(array), size), size

    def check(self, job: "JobSpec") -> None:
        """Check that the store uses S3's protocol."""
        check_has(job, "array")
        protocol = job.target.protocol
        if protocol is not StoreProtocol.S3 and job.load.folder is None:
            raise wrong(
                "bucket",
                f"uses {protocol}://, and array libraries are opened for S3 only",
                hint="use a bucket with S3's protocol, or `workload` write and read",
            )

    def check_library(self, load: Load) -> None:
        """Check that the library is installed and supports the array."""
        from serverless_bench.features.array.libraries.check import check_array

        check_array(_array(load))

    def check_key(self, load: Load, key: str) -> None:
        """Check that the key belongs to an array of this shape."""
        shape_at(_array(load), key)

    def hidden_requests(
        self, load: Load, done: Iterable[tuple[OperationKind, int | None]]
    ) -> Counter[str]:
        """Return one request for each object that the library transferred."""
        requests, array = Counter[str](), ArrayLoad.narrow(load).array
        if array is None or array.path is not None:
            return requests
        for kind, size in done:
            if kind in _REQUESTS and size is not None and size >= 0:
                requests[_REQUESTS[kind]] += objects_of(array, kind, size)
        return requests

    def remove_files(self, run: "Run") -> int:
        """Remove the directories of a run's arrays."""
        from serverless_bench.features.array.files import remove_arrays

        return remove_arrays(run)

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of all chunks and of the metadata; arrays in files have none."""
        array = _array(invocation.load)
        if array.path is not None:
            return
        for key in new_arrays(invocation):
            yield from array_keys(array, key)

    def recognizes(self, key: str, head: "Head") -> bool | None:
        """Return whether an object is metadata, or certainly a chunk.

        All codecs store incompressible bytes unchanged after a header. Blosc shuffles those of a
        chunk at the edge, which is compressible; only its header is checked then. The further
        levels of an image hold means of the run's data and are identified by their keys alone.
        """
        if parent_key(key) is None:
            return None
        if key.rpartition("/")[2] in METADATA:
            return head.data.lstrip()[:1] == b"{"
        return is_smaller_level(key) or _is_blosc(head) or None

    def performer(self, invocation: "InvocationSpec") -> "Performer":
        """Return the performer; it loads NumPy, which other workloads do not need."""
        from serverless_bench.features.array.operation import ArrayPerformer

        return ArrayPerformer(_array(invocation.load), invocation.target)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the operations, all in the first thread: a library starts its threads itself."""
        if thread:
            return
        array = _array(invocation.load)
        if array.operation == "append":
            (key,), added = new_arrays(invocation), array_bytes(array)
            for number in range(invocation.objects):
                yield OperationSpec(
                    kind=_kind(array),
                    key=key,
                    size=declared_size(key),
                    offset=number * added,
                    length=added,
                )
            return
        reads = chain.from_iterable(repeat(invocation.keys, invocation.read_times))
        for key in reads if array.operation == "read" else new_arrays(invocation):
            yield OperationSpec(kind=_kind(array), key=key, size=declared_size(key))


def new_arrays(invocation: "InvocationSpec") -> Iterator[str]:
    """Yield the keys of the arrays that an invocation creates; they are prefixes of all objects."""
    array = _array(invocation.load)
    if array.operation == "read":
        return
    size, count = array_bytes(array), invocation.objects
    if array.operation == "append":
        yield planned_object(invocation, 0, size=size * count).key
        return
    yield from (planned_object(invocation, number, size=size).key for number in range(count))


def _is_blosc(head: "Head") -> bool:
    """Return whether an object starts with a frame of Blosc (c-blosc, README_CHUNK_FORMAT)."""
    version, size = head.data[:1], int.from_bytes(head.data[12:16], "little")
    return version == b"\x02" and _BLOSC_HEAD < size <= head.size


def _kind(array: ArraySpec) -> OperationKind:
    return OperationKind(f"{array.operation}_array")


def _array(load: Load) -> ArraySpec:
    if (array := ArrayLoad.narrow(load).array) is None:
        raise ValueError("the array workload needs an array")
    return array


WORKLOAD = Array()
