"""Table of objects: keys, the origin of the bytes, and open uploads.

A key that declares its size takes as much memory as its text, about 100 bytes, and a dictionary
entry. A part does not declare its position: parts may have any size and arrive in any order.
The bytes themselves identify it, so each part is compared with the keystream on arrival, and
its position is compared with its neighbours when the upload is completed.
"""

import secrets
import threading
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from serverless_bench.base.clock import wall_ns
from serverless_bench.features.loopback.bodies import UploadCheck, matching
from serverless_bench.features.loopback.s3 import S3Error
from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.job.target import MIN_PART_BYTES
from serverless_bench.payload.shaped import content_of

ABSENT: Final = 0
"""Version of an object that was never written, or was deleted."""
NO_VERSION: Final = -1
"""Version that no object has."""
_NEVER_WRITTEN: Final = 1
"""Version of an unwritten object that can be read anyway, because its key declares its content."""
_GENERATION_BITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An open multipart upload."""

    upload_id: str
    key: str
    parts: dict[int, UploadCheck] = field(default_factory=dict)
    """Parts by part number; a part that is sent again replaces the previous upload of it."""
    ending: threading.Lock = field(default_factory=threading.Lock)
    """Held while it is completed or aborted, which happens once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """Content of an object."""

    key: str
    size: int
    generation: int = 0
    """Generation of the keystream."""
    verbatim: bytes | None = None
    """The bytes themselves; None if they are the keystream of the key."""
    copy_of: str | None = None
    """Key of the keystream that the object holds, if it differs from ``key``."""
    version: int = _NEVER_WRITTEN
    """Version, which is unique to each write to the store."""
    written_ns: int | None = None
    """Time of the write; None for an object of a benchmark, for which it is not stored."""

    @property
    def etag(self) -> str:
        """Entity tag, which changes with the bytes."""
        content_id = self.generation if self.verbatim is None else hash(self.verbatim) & 0xFFFFFFFF
        return f'"{hash_key(self.copy_of or self.key):016x}-{self.size:x}-{content_id:x}"'

    def copy_to(self, key: str) -> "StoredObject":
        """Return an object with the same bytes under another key."""
        source = (self.copy_of or self.key) if self.verbatim is None else None
        return replace(self, key=key, copy_of=None if source == key else source)

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes starting at ``offset``."""
        if self.verbatim is None:
            content_of(self.copy_of or self.key, self.generation).readinto_at(offset, buffer)
        else:
            buffer[:] = self.verbatim[offset : offset + len(buffer)]


def etag_of(part: UploadCheck) -> str:
    """Return the entity tag of a part."""
    position = "unknown" if part.offset is None else f"{part.offset:x}"
    return f'"{position}-{part.size:x}"'


def assemble(
    key: str, parts: Mapping[int, UploadCheck], listed: Sequence[tuple[int, str]], *, verifies: bool
) -> StoredObject:
    """Return the object assembled from the listed parts.

    Parameters
    ----------
    key
        Key of the object.
    parts
        All parts that were uploaded.
    listed
        Number and entity tag of each part, as in the request to complete the upload.
    verifies
        False adds up sizes without any comparison.

    Raises
    ------
    S3Error
        If a part is missing, too small, out of order, or at the wrong position.
    """
    numbers = [number for number, _ in listed]
    if not numbers or numbers != sorted(set(numbers)):
        raise S3Error(400, "InvalidPartOrder", "parts have to be listed in ascending order")
    offset, generation = 0, None
    verbatim = _kept(key, [parts[number] for number in numbers if number in parts])
    for number, etag in listed:
        part = parts.get(number)
        if part is None or etag.strip('"') != etag_of(part).strip('"'):
            raise S3Error(400, "InvalidPart", f"there is no part {number} with this entity tag")
        if part.size < MIN_PART_BYTES and number != numbers[-1]:
            raise S3Error(400, "EntityTooSmall", f"part {number} is smaller than 5 MiB")
        if verifies and verbatim is None:
            generation = _fits(key, number, part, offset, generation)
        offset += part.size
    return StoredObject(key=key, size=offset, generation=generation or 0, verbatim=verbatim)


def _kept(key: str, parts: Sequence[UploadCheck]) -> bytes | None:
    """Return the concatenation of foreign parts; None if the bytes have to be a keystream."""
    short = [part.verbatim for part in parts if part.verbatim is not None]
    foreign = declared_size(key) is None and len(short) == len(parts)
    return b"".join(short) if foreign else None


def _fits(
    key: str, number: int, part: UploadCheck, offset: int, generation: int | None
) -> int | None:
    """Return the generation of the parts up to and including this part."""
    part_offset, part_generation = part.offset, part.generation
    if part.verbatim is not None:
        keystream = matching(key, offset, memoryview(part.verbatim))
        part_offset = None if keystream is None else offset
        part_generation = None if keystream is None else keystream.generation
    if part_offset != offset:
        raise S3Error(
            400, "BadDigest", f"part {number} holds bytes from {part_offset}, not from {offset}"
        )
    if generation is not None and part_generation != generation:
        raise S3Error(400, "BadDigest", f"part {number} belongs to another generation")
    return part_generation


@dataclass
class _LoopbackBucket:
    kept: dict[str, "int | StoredObject"] = field(default_factory=dict)
    """Entries by key; version and generation suffice for keys that declare their size."""
    order: list[str] | None = None
    """Keys in the order of listings; None after a key was added or removed."""
    uploads: dict[str, Upload] = field(default_factory=dict)


class ObjectTable:
    """All buckets of a server, safe to share between threads.

    Parameters
    ----------
    strict
        Whether only written objects exist. Otherwise every object whose key declares its size
        can be read.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._buckets: defaultdict[str, _LoopbackBucket] = defaultdict(_LoopbackBucket)
        self._lock = threading.Lock()
        # Start at microseconds since the epoch, like Google, so that a later server has higher
        # numbers.
        self._versions = count(wall_ns() // 1000)

    def buckets(self) -> list[str]:
        """Return the names of the buckets that have been written to."""
        with self._lock:
            return sorted(self._buckets)

    def count(self) -> int:
        """Return the number of objects that were written and not deleted."""
        with self._lock:
            return sum(len(bucket.kept) for bucket in self._buckets.values())

    def find(self, bucket: str, key: str, *, written: bool = False) -> StoredObject | None:
        """Return the content of an object; None if it does not exist.

        Parameters
        ----------
        bucket, key
            Bucket and key of the object.
        written
            Whether to consider only written objects, as conditions do.
        """
        with self._lock:
            entry = self._buckets[bucket].kept.get(key) if bucket in self._buckets else None
        if isinstance(entry, StoredObject):
            return entry
        size = declared_size(key)
        if size is None or (entry is None and (self._strict or written)):
            return None
        if entry is None:
            return StoredObject(key=key, size=size)
        version, generation = divmod(entry, 1 << _GENERATION_BITS)
        return StoredObject(key=key, size=size, generation=generation, version=version)

    def put(
        self, bucket: str, content: StoredObject, *, if_version: int | None = None
    ) -> StoredObject | None:
        """Record a write of an object, and return the object with the new version.

        Parameters
        ----------
        bucket, content
            Bucket and new content of the object.
        if_version
            Version that the object has to have before the write, ``ABSENT`` for no object; None for
            any. On a mismatch, the method writes nothing and returns None.
        """
        key = content.key
        plain = (
            content.verbatim is None and not content.copy_of and declared_size(key) == content.size
        )
        with self._lock:
            stored = self._buckets[bucket]
            if not self._has_version(stored.kept.get(key), if_version):
                return None
            if key not in stored.kept:
                stored.order = None
            written_ns = None if plain else wall_ns()
            written = replace(content, version=next(self._versions), written_ns=written_ns)
            packed = written.version << _GENERATION_BITS | written.generation
            stored.kept[key] = packed if plain else written
            return written

    def delete(self, bucket: str, key: str, *, if_version: int | None = None) -> bool:
        """Remove an object; return False if it does not have the required version."""
        with self._lock:
            stored = self._buckets[bucket]
            if not self._has_version(stored.kept.get(key), if_version):
                return False
            if stored.kept.pop(key, None) is not None:
                stored.order = None
            return True

    def has_version(self, bucket: str, key: str, version: int) -> bool:
        """Return whether an object now has this version."""
        with self._lock:
            return self._has_version(self._buckets[bucket].kept.get(key), version)

    def _has_version(self, entry: "int | StoredObject | None", version: int | None) -> bool:
        if version is None:
            return True
        if entry is None:
            return version == ABSENT or (version == _NEVER_WRITTEN and not self._strict)
        present = entry.version if isinstance(entry, StoredObject) else entry >> _GENERATION_BITS
        return present == version

    def page(
        self, bucket: str, prefix: str, after: str, limit: int, *, unordered: bool = False
    ) -> tuple[list[str], bool]:
        """Return up to ``limit`` keys with ``prefix`` after ``after``, and whether more follow.

        The keys are in the order of listings, or in a different one if ``unordered``.
        """
        with self._lock:
            stored = self._buckets[bucket]
            if stored.order is None:
                # S3 lists in the order of UTF-8 bytes, identical to the order of code points.
                stored.order = sorted(stored.kept)
            order = stored.order
        if unordered:
            # The order of the hash of a key resembles no order of S3.
            places = sorted((hash_key(key), key) for key in order if key.startswith(prefix))
            rest = places[bisect_right(places, (hash_key(after), after)) if after else 0 :]
            return [key for _, key in rest[:limit]], len(rest) > limit
        begin = max(bisect_left(order, prefix), bisect_right(order, after) if after else 0)
        matching_keys = [key for key in order[begin : begin + limit + 1] if key.startswith(prefix)]
        return matching_keys[:limit], len(matching_keys) > limit

    def begin_upload(self, bucket: str, key: str) -> str:
        """Start a multipart upload and return the id."""
        upload = Upload(upload_id=secrets.token_hex(16), key=key)
        with self._lock:
            self._buckets[bucket].uploads[upload.upload_id] = upload
        return upload.upload_id

    def upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        """Return an open upload.

        Raises
        ------
        S3Error
            If no upload with this key and id is open.
        """
        with self._lock:
            upload = self._buckets[bucket].uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise S3Error(404, "NoSuchUpload", "this upload is not open")
        return upload

    def end_upload(self, bucket: str, upload_id: str) -> None:
        """Remove an upload."""
        with self._lock:
            self._buckets[bucket].uploads.pop(upload_id, None)

    def uploads(self, bucket: str, prefix: str) -> list[Upload]:
        """Return the open uploads of keys with ``prefix``, by key and id."""
        with self._lock:
            uploads = list(self._buckets[bucket].uploads.values())
        uploads.sort(key=lambda upload: (upload.key, upload.upload_id))
        return [upload for upload in uploads if upload.key.startswith(prefix)]
