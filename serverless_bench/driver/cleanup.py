"""Delete objects that a run made, and nothing else.

Three things must hold before an object is deleted: its key is one of the run's, as
``run_keys`` says, or derives from the run as a claim's and a record's do; it lies below the
run's prefix; and it begins like something that the run wrote. It is then deleted only if it
still is the object that was looked at (``If-Match``), where the store has that condition.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final, Literal

from serverless_bench.driver.bucket import open_bucket
from serverless_bench.driver.target import loading
from serverless_bench.errors import NotFound, OperationError, StoreError
from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.job.shared_keys import is_of_key, is_shared_key
from serverless_bench.job.target import Target
from serverless_bench.payload.array_layout import (
    METADATA,
    MIN_RUN_BYTES,
    array_of,
    is_smaller_level,
)
from serverless_bench.payload.keystream import BLOCK, identify
from serverless_bench.payload.shaped import content_of
from serverless_bench.stores.embedded import Lease, default_directory
from serverless_bench.worker.barrier import is_gate_key
from serverless_bench.worker.claims import (
    for_events,
    for_run,
    is_of_probe,
    parse_claim,
    parse_record,
)
from serverless_bench.worker.object_io import Head, ObjectIO

_BATCH: Final = 1000
THREADS: Final = 64
"""A round trip of 100 ms lets each make ten requests a second."""
_TIMEOUT_S: Final = 30.0
HEAD_BYTES: Final = 256
"""Of an object that tell whose it is."""
_PIECE: Final = 32
"""Two counter blocks of the keystream tell whose bytes they are."""
_CHUNK_PIECE: Final = 3 * BLOCK
"""What holds two counter blocks wherever they begin."""
_CHUNK_LOOK: Final = MIN_RUN_BYTES - _CHUNK_PIECE
_BLOSC_HEAD: Final = 16
_CHANGED: Final = 412
_NO_SUCH_RANGE: Final = 416
"""The answer for the first bytes of an object that has none."""
_GATE: Final = b"+"
"""What the objects of a gate hold; see ``gate``."""

_End = Literal["deleted", "kept", "absent", "foreign", "failed"]
"""What became of one key."""


@dataclass(slots=True, kw_only=True)
class Deleted:
    """What ``delete`` did."""

    objects: int = 0
    kept: int = 0
    """Objects and control objects that the bucket keeps as older versions."""
    uploads: int = 0
    """Multipart uploads that were still open and are now aborted."""
    lists_uploads: bool = True
    """Whether the store says which uploads are open: those of some are not found."""
    control: int = 0
    """Claims and records."""
    failed: list[str] = field(default_factory=list)
    """Keys that the store refused to delete."""
    foreign: list[str] = field(default_factory=list)
    """Keys at which something is that the run did not write; left as it is."""
    requests: Counter[str] = field(default_factory=Counter, compare=False)
    """Billed requests that this took, by kind: the deletions themselves are free."""

    def add(self, more: "Deleted") -> None:
        """Count further deletions, but not what they took nor the uploads of their keys."""
        for name in ("objects", "kept", "control", "failed", "foreign"):
            setattr(self, name, getattr(self, name) + getattr(more, name))


def delete(
    target: Target,
    keys: Iterable[str],
    *,
    in_arrays: bool = False,
    give_back: bool = True,
    on_begin: Callable[[], object] = lambda: None,
) -> Deleted:
    """Delete objects by key and abort the uploads of those keys that are still open.

    Parameters
    ----------
    target
        Where. Keys that are not below its prefix are foreign.
    keys
        Keys of a run: nothing else is ever touched.
    in_arrays
        Whether these are objects of arrays, which are known by less than other objects.
    give_back
        Whether the embedded store gives their space back to the disk, which takes seconds.
    on_begin
        Called when the store has answered, before the first deletion.

    Raises
    ------
    StoreError
        If the store does not answer or refuses.
    """
    named = list(dict.fromkeys(keys))
    mine = [key for key in named if key.startswith(target.prefix)]
    deleted = Deleted(foreign=[key for key in named if not key.startswith(target.prefix)])
    is_ours = ownership(mine, in_arrays=in_arrays)
    # Asked first: it says in one request whether the store answers and lets us in.
    asked = Counter[str]()
    with open_bucket(target, asked) as bucket, loading(target):
        uploads = bucket.uploads(target.prefix) if mine else []
        deleted.lists_uploads = uploads is not None
        on_begin()
        with closing(ObjectIO(replace(target, prefix=""))) as objects:
            deleted.objects = _delete_all(objects, mine, is_ours, deleted)
            deleted.requests = objects.requests + Counter(list=asked["list"])
        known = set(mine)
        for upload in uploads or ():
            if upload.key in known:
                bucket.abort(upload)
                deleted.uploads += 1
    if give_back and target.store is not None:
        give_space_back()
    return deleted


def ownership(keys: Iterable[str], *, in_arrays: bool) -> Callable[[str, Head], bool]:
    """Return what tells by its beginning whether an object is one of those with these keys."""
    # A chunk holds bytes of its array, whose key is not one of an object.
    hashes = {hash_key(key if declared_size(key) else array_of(key) or key) for key in keys}
    return partial(_is_ours, hashes=hashes, in_arrays=in_arrays)


def give_space_back() -> None:
    """Have the embedded store, if it runs, give the space of deleted objects to the disk.

    Where that fails, the space is all that it costs: the next one may have it.
    """
    with suppress(OSError, StoreError):
        lease = Lease.take(default_directory(), start=False)
        if lease is not None:
            try:
                lease.ask("reclaim")
            finally:
                lease.release()


def delete_control(control: Target, run_id: str) -> Deleted:
    """Delete the claims and records of a run, and events that nobody has taken.

    Parameters
    ----------
    control
        The job's control target.
    run_id
        Of the run.

    Raises
    ------
    StoreError
        If the prefix cannot be listed.
    """
    deleted, is_ours = Deleted(), partial(names_run, run_id=run_id)
    for where, folder, is_named in control_folders(control, run_id):
        with closing(ObjectIO(where)) as objects:
            try:
                pages = objects.list_pages(folder, timeout_s=_TIMEOUT_S)
                names = [folder + name for page in pages for name in page if is_named(name)]
            except OperationError as exc:
                raise StoreError(f"{control.url} cannot be listed: {exc}") from exc
            deleted.control += _delete_all(objects, names, is_ours, deleted, where.prefix)
    return deleted


def control_folders(
    control: Target, run_id: str
) -> Iterator[tuple[Target, str, Callable[[str], bool]]]:
    """Yield where claims, records and events of a run lie, and what tells their names.

    Yields
    ------
    Target, str, callable
        The control target of the folder, the folder, and whether a name in it is of the run.
    """
    own, events = for_run(control, run_id), for_events(control)
    yield own, "records/", lambda name: bool(parse_record(name)) or is_of_probe("records/" + name)
    yield own, "claims/", lambda name: bool(parse_claim(name)) or is_of_probe("claims/" + name)
    yield events, f"{run_id}/", lambda name: bool(parse_claim(name))


def _delete_all(
    objects: ObjectIO,
    names: Sequence[str],
    is_ours: Callable[[str, Head], bool],
    deleted: Deleted,
    prefix: str = "",
) -> int:
    """Return how many objects were deleted; the keys of those that were left are noted."""
    keys: dict[_End, list[str]] = defaultdict(list)
    remaining = iter(names)
    with ThreadPoolExecutor(THREADS) as pool:
        while batch := list(islice(remaining, _BATCH)):
            ends = pool.map(partial(_delete_one, objects, is_ours), batch)
            for name, end in zip(batch, ends, strict=True):
                keys[end].append(prefix + name)
    deleted.failed += keys["failed"]
    deleted.foreign += keys["foreign"]
    deleted.kept += len(keys["kept"])
    return len(keys["deleted"]) + len(keys["kept"])


def _delete_one(objects: ObjectIO, is_ours: Callable[[str, Head], bool], name: str) -> _End:
    try:
        head = _head_of(objects, name)
        if not is_ours(name, head):
            return "foreign"
        is_kept = _delete_if_same(objects, name, head.etag)
    except NotFound:
        return "absent"
    except OperationError as exc:
        # 412: somebody has written there since we looked.
        return "foreign" if exc.status == _CHANGED else "failed"
    return "kept" if is_kept else "deleted"


def _head_of(objects: ObjectIO, name: str) -> Head:
    try:
        return objects.head(name, HEAD_BYTES, timeout_s=_TIMEOUT_S)
    except OperationError as exc:
        if exc.status != _NO_SUCH_RANGE:
            raise
        # Its tag is the MD5 of nothing, but not where KMS encrypts.
        return objects.head(name, 0, timeout_s=_TIMEOUT_S)


def _delete_if_same(objects: ObjectIO, name: str, etag: str) -> bool:
    """Delete an object, and return whether the bucket keeps it as an older version."""
    try:
        return objects.delete(name, etag=etag, timeout_s=_TIMEOUT_S)
    except OperationError as exc:
        if exc.status not in {400, 501}:
            raise
        # No conditional deletes here; what we saw a moment ago has to do.
        return objects.delete(name, etag="", timeout_s=_TIMEOUT_S)


def _is_ours(key: str, head: Head, *, hashes: set[int], in_arrays: bool) -> bool:
    """Tell whether an object begins with bytes that a run with these keys makes.

    Bytes of another object of the same run count too, and a few wrong ones do not
    matter: a store that mixes up what it was given does not keep us from cleaning up.
    """
    # By its end: a prefix may look like anything, an array of ours included.
    if declared_size(key) is None:
        if is_shared_key(key):
            return is_of_key(key, head.data)
        if in_arrays and array_of(key) is not None and not is_gate_key(key):
            return _is_of_array(key, head, hashes)
        return head.data == _GATE and head.size == len(_GATE)
    if head.size == 0:
        # SeaweedFS makes this of an upload whose worker was killed before its first byte.
        return True
    if content_of(key).agrees(0, memoryview(head.data)):
        return True
    return _has_bytes_of(hashes, head.data, range(0, len(head.data), _PIECE), _PIECE)


def _is_of_array(key: str, head: Head, hashes: set[int]) -> bool:
    """Tell whether an object of an array is metadata, or begins like a chunk of ours.

    Incompressible bytes stand in every codec as they are, behind a head. Blosc shuffles
    those of a chunk at the edge, which it can compress: then its own head has to do. The
    further levels of an image hold means of ours: their keys alone say that they are ours.
    """
    if key.rpartition("/")[2] in METADATA:
        return head.data.lstrip()[:1] == b"{"
    if is_smaller_level(key) or _is_blosc(head):
        return True
    return _has_bytes_of(hashes, head.data, range(0, _CHUNK_LOOK, BLOCK), _CHUNK_PIECE)


def _has_bytes_of(hashes: set[int], data: bytes, starts: range, size: int) -> bool:
    """Tell whether any piece of this size is of an object whose key has one of these hashes."""
    origins = (identify(memoryview(data[at : at + size])) for at in starts)
    return any(origin is not None and origin.key_hash in hashes for origin in origins)


def _is_blosc(head: Head) -> bool:
    """Tell whether an object begins with a frame of Blosc (c-blosc, README_CHUNK_FORMAT)."""
    version, size = head.data[:1], int.from_bytes(head.data[12:16], "little")
    return version == b"\x02" and _BLOSC_HEAD < size <= head.size


def names_run(name: str, head: Head, *, run_id: str) -> bool:
    """Tell whether a claim or a record says that it is of this run."""
    del name
    start = head.data.decode("utf-8", "replace").replace(" ", "")
    return start.startswith("{") and f'"run_id":{json.dumps(run_id)}' in start
