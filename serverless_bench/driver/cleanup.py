"""Delete the objects of a run and nothing else.

Three conditions must hold before an object is deleted: its key is one of the run's, according to
``run_keys``, or is derived from the run like the keys of claims and records; it is below the run's
prefix; and its first bytes match data that the run wrote. The deletion is conditional on the ETag
of the inspected object (``If-Match``), if the store supports that condition.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final, Literal

from serverless_bench.base.errors import NotFound, OperationError, StoreError
from serverless_bench.base.units import format_count, format_size
from serverless_bench.driver.bucket import open_bucket
from serverless_bench.driver.policy import control_folders
from serverless_bench.driver.target import loading
from serverless_bench.job.abilities import Recognizing
from serverless_bench.job.keys import (
    MAX_NOTE_BYTES,
    MIN_PIECE_BYTES,
    NOTE,
    declared_size,
    hash_key,
    is_note_key,
    parent_key,
)
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Trait, Workload
from serverless_bench.payload.keystream import BLOCK, identify
from serverless_bench.payload.shaped import content_of
from serverless_bench.worker.object_io import Head, ObjectIO

_BATCH: Final = 1000
THREADS: Final = 64
"""With a round trip of 100 ms each thread makes ten requests per second."""
_TIMEOUT_S: Final = 30.0
HEAD_BYTES: Final = 256
"""Number of leading bytes of an object that identify the run that wrote it."""
_PIECE: Final = 32
"""Two counter blocks of the keystream, which identify the object that they belong to."""
_CHUNK_PIECE: Final = 3 * BLOCK
"""Any piece of this length contains two complete counter blocks."""
_CHUNK_LOOK: Final = MIN_PIECE_BYTES - _CHUNK_PIECE
_CHANGED: Final = 412
_NO_SUCH_RANGE: Final = 416
"""Status for the first bytes of an empty object."""

OTHER: Final = Workload()
"""A workload with objects that have only keys with a size."""
CLEANER_HINT: Final = "on AWS, attach the policy in the stack's output CleanerPolicyArn"

_End = Literal["deleted", "kept", "absent", "foreign", "failed"]
"""Result for a key."""


@dataclass(slots=True, kw_only=True)
class Deleted:
    """Result of ``delete``."""

    objects: int = 0
    kept: int = 0
    """Objects and control objects that the bucket keeps as older versions."""
    uploads: int = 0
    """Multipart uploads that were open and have been aborted."""
    lists_uploads: bool = True
    """Whether the store lists open uploads; otherwise none are found."""
    control: int = 0
    """Claims and records."""
    failed: list[str] = field(default_factory=list)
    """Keys that the store failed to delete."""
    failed_bytes: int = 0
    """Size of their objects, as far as the store has told it."""
    reason: str = ""
    """The store's words about the first of them."""
    foreign: list[str] = field(default_factory=list)
    """Keys with data that the run did not write; these objects are not changed."""
    requests: Counter[str] = field(default_factory=Counter, compare=False)
    """Billed requests of the deletion by kind; DELETE requests are free."""

    def add(self, more: "Deleted") -> None:
        """Add further deletions, without their requests and uploads."""
        for name in ("objects", "kept", "control", "failed", "failed_bytes", "foreign"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.reason = self.reason or more.reason

    @property
    def left(self) -> str:
        """Objects that could not be deleted, with the reason; empty if there are none."""
        keys = {*self.failed, *self.foreign}
        if not keys:
            return ""
        size = f" ({format_size(self.failed_bytes)})" if self.failed_bytes else ""
        reason = self.reason or "they hold what the run did not write"
        return f"{format_count(len(keys), 'object')}{size} could not be deleted: {reason}"

    @property
    def remedy(self) -> str:
        """Hint for a store that denies the deletion; empty if it did not."""
        return CLEANER_HINT if "AccessDenied" in self.reason else ""


def delete(
    target: Target,
    keys: Iterable[str],
    *,
    workload: Workload = OTHER,
    give_back: bool = True,
    on_begin: Callable[[], object] = lambda: None,
) -> Deleted:
    """Delete objects by key and abort the uploads of those keys that are still open.

    Parameters
    ----------
    target
        Location of the objects. Keys that are not below its prefix are foreign.
    keys
        Keys of a run; other objects are never deleted.
    workload
        Workload of the run, which recognizes objects with keys of other forms.
    give_back
        Whether the embedded store returns their space to the disk, which takes seconds.
    on_begin
        Called after the first response of the store, before the first deletion.

    Raises
    ------
    StoreError
        If the store does not respond or denies access.
    """
    unique_keys = list(dict.fromkeys(keys))
    keys_below_prefix = [key for key in unique_keys if key.startswith(target.prefix)]
    deleted = Deleted(foreign=[key for key in unique_keys if not key.startswith(target.prefix)])
    is_ours = ownership(keys_below_prefix, workload)
    # The list of uploads comes first: one request shows whether the store allows access.
    request_counts = Counter[str]()
    with open_bucket(target, request_counts) as bucket, loading(target):
        uploads = bucket.uploads(target.prefix) if keys_below_prefix else []
        deleted.lists_uploads = uploads is not None
        on_begin()
        with closing(ObjectIO(replace(target, prefix=""))) as objects:
            deleted.objects = _delete_all(objects, keys_below_prefix, is_ours, deleted)
            deleted.requests = objects.requests + Counter(list=request_counts["list"])
        key_set = set(keys_below_prefix)
        for upload in uploads or ():
            if upload.key in key_set:
                try:
                    bucket.abort(upload)
                except OperationError as exc:
                    deleted.failed.append(upload.key)
                    deleted.reason = deleted.reason or str(exc)
                else:
                    deleted.uploads += 1
    if give_back and target.store is not None:
        give_space_back()
    return deleted


def ownership(keys: Iterable[str], workload: Workload) -> Callable[[str, Head], bool]:
    """Return a function that decides from its first bytes if an object belongs to these keys."""
    # Chunks contain bytes of their array, which has its own key.
    hashes = {hash_key(key if declared_size(key) else parent_key(key) or key) for key in keys}
    return partial(_is_ours, hashes=hashes, workload=workload)


def give_space_back() -> None:
    """Make the embedded store, if it is running, return the space of deleted objects to the disk.

    Errors are ignored: later objects can reuse the space.
    """
    # A series loads this module, but not every one has the embedded store.
    from serverless_bench.stores.embedded import Lease, default_directory

    with suppress(OSError, StoreError):
        lease = Lease.take(default_directory(), start=False)
        if lease is not None:
            try:
                lease.ask("reclaim")
            finally:
                lease.release()


def delete_control(control: Target, run_id: str) -> Deleted:
    """Delete the claims and records of a run, and its events that no function has claimed.

    Parameters
    ----------
    control
        The job's control target.
    run_id
        Identifier of the run.

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


def _delete_all(
    objects: ObjectIO,
    names: Sequence[str],
    is_ours: Callable[[str, Head], bool],
    deleted: Deleted,
    prefix: str = "",
) -> int:
    """Return the number of deleted objects; keys that were not deleted are added to ``deleted``."""
    keys: dict[_End, list[str]] = defaultdict(list)
    remaining = iter(names)
    with ThreadPoolExecutor(THREADS) as pool:
        while batch := list(islice(remaining, _BATCH)):
            ends = pool.map(partial(_delete_one, objects, is_ours), batch)
            for name, (end, size, reason) in zip(batch, ends, strict=True):
                keys[end].append(prefix + name)
                deleted.failed_bytes += size
                deleted.reason = deleted.reason or reason
    deleted.failed += keys["failed"]
    deleted.foreign += keys["foreign"]
    deleted.kept += len(keys["kept"])
    return len(keys["deleted"]) + len(keys["kept"])


def _delete_one(
    objects: ObjectIO, is_ours: Callable[[str, Head], bool], name: str
) -> tuple[_End, int, str]:
    """Return the result for a key; if the store fails, also the size and the reason."""
    size = 0
    try:
        head = _head_of(objects, name)
        if not is_ours(name, head):
            return "foreign", 0, ""
        size = head.size
        is_kept = _delete_if_same(objects, name, head.etag)
    except NotFound:
        return "absent", 0, ""
    except OperationError as exc:
        # 412: the object has changed after it was inspected.
        return ("foreign", 0, "") if exc.status == _CHANGED else ("failed", size, str(exc))
    return "kept" if is_kept else "deleted", 0, ""


def _head_of(objects: ObjectIO, name: str) -> Head:
    try:
        return objects.head(name, HEAD_BYTES, timeout_s=_TIMEOUT_S)
    except OperationError as exc:
        if exc.status != _NO_SUCH_RANGE:
            raise
        # The ETag is the MD5 of no bytes, except with KMS encryption.
        return objects.head(name, 0, timeout_s=_TIMEOUT_S)


def _delete_if_same(objects: ObjectIO, name: str, etag: str) -> bool:
    """Delete an object, and return whether the bucket keeps it as an older version."""
    try:
        return objects.delete(name, etag=etag, timeout_s=_TIMEOUT_S)
    except OperationError as exc:
        if exc.status not in {400, 501}:
            raise
        # The store has no conditional deletes; the check a moment ago has to suffice.
        return objects.delete(name, etag="", timeout_s=_TIMEOUT_S)


def _is_ours(key: str, head: Head, *, hashes: set[int], workload: Workload) -> bool:
    """Return whether an object starts with bytes that a run with these keys writes.

    Bytes of another object of the same run are accepted, and so are a few wrong bytes: a run
    can be cleaned up even if the store has mixed up its data.
    """
    # Only the end of a key is tested: a prefix can look like anything, even like an array's key.
    if declared_size(key) is None:
        if not is_note_key(key):
            known = workload.recognizes(key, head) if isinstance(workload, Recognizing) else None
            if known is not None:
                return known
            if Trait.DERIVES_KEYS in workload.traits and parent_key(key) is not None:
                starts = range(0, _CHUNK_LOOK, BLOCK)
                return _has_bytes_of(hashes, head.data, starts, _CHUNK_PIECE)
        # An instant may follow.
        is_note = head.data[:1] == NOTE and (b"0" + head.data[1:]).isdigit()
        return is_note and head.size <= MAX_NOTE_BYTES
    if head.size == 0:
        # SeaweedFS creates an empty object if a worker was killed before the first byte of an
        # upload.
        return True
    starts = range(0, len(head.data), _PIECE)
    has_all = content_of(key).agrees(0, memoryview(head.data))
    return has_all or _has_bytes_of(hashes, head.data, starts, _PIECE)


def _has_bytes_of(hashes: set[int], data: bytes, starts: range, size: int) -> bool:
    """Return whether a piece of this size belongs to an object with one of these key hashes."""
    origins = (identify(memoryview(data[at : at + size])) for at in starts)
    return any(origin is not None and origin.key_hash in hashes for origin in origins)


def names_run(name: str, head: Head, *, run_id: str) -> bool:
    """Return whether a claim or record contains the identifier of this run."""
    del name
    start = head.data.decode("utf-8", "replace").replace(" ", "")
    return start.startswith("{") and f'"run_id":{json.dumps(run_id)}' in start
