"""Which objects there are: their keys, of each what its bytes can be made from, open uploads.

A key that declares its size costs what its text costs, about 100 bytes, and an entry of
a dictionary. A part does not say where it belongs: parts may differ in size and come in
any order. Its bytes do, so each is compared with the keystream when it comes, and where
it lies is compared with its neighbours when the upload is completed.
"""

import secrets
import threading
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from serverless_bench.clock import wall_ns
from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.job.transfer import MIN_PART_BYTES
from serverless_bench.lab.loopback.bodies import UploadCheck, matching
from serverless_bench.lab.loopback.s3 import S3Error
from serverless_bench.payload.shaped import content_of

ABSENT: Final = 0
"""The version of an object that was not written, or was deleted."""
NO_VERSION: Final = -1
"""The version of no object."""
_NEVER_WRITTEN: Final = 1
"""The version of an object that can be read all the same, because its key says what it holds."""
_GENERATION_BITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload in parts that is still open."""

    upload_id: str
    key: str
    parts: dict[int, UploadCheck] = field(default_factory=dict)
    """By part number; a part that comes again replaces the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """What an object holds."""

    key: str
    size: int
    generation: int = 0
    """Of the keystream."""
    verbatim: bytes | None = None
    """The bytes themselves; None if they are the keystream of the key."""
    copy_of: str | None = None
    """The key whose keystream it holds, where that is another one."""
    version: int = _NEVER_WRITTEN
    """Another one for each write to the store, and never the same again."""

    @property
    def etag(self) -> str:
        """An entity tag that is another one when the bytes are."""
        own = self.generation if self.verbatim is None else hash(self.verbatim) & 0xFFFFFFFF
        return f'"{hash_key(self.copy_of or self.key):016x}-{self.size:x}-{own:x}"'

    def copy_to(self, key: str) -> "StoredObject":
        """Return an object with the same bytes under another key."""
        source = (self.copy_of or self.key) if self.verbatim is None else None
        return replace(self, key=key, copy_of=None if source == key else source)

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""
        if self.verbatim is None:
            content_of(self.copy_of or self.key, self.generation).readinto_at(offset, buffer)
        else:
            buffer[:] = self.verbatim[offset : offset + len(buffer)]


def etag_of(part: UploadCheck) -> str:
    """Return the entity tag of a part."""
    place = "unknown" if part.offset is None else f"{part.offset:x}"
    return f'"{place}-{part.size:x}"'


def assemble(
    key: str, parts: Mapping[int, UploadCheck], listed: Sequence[tuple[int, str]], *, verifies: bool
) -> StoredObject:
    """Return the object that the listed parts make.

    Parameters
    ----------
    key
        Of the object.
    parts
        Everything that was uploaded.
    listed
        Number and entity tag of each part, as the request to complete has them.
    verifies
        False adds up sizes and compares nothing.

    Raises
    ------
    S3Error
        If a part is missing, too small, out of order, or not where its bytes belong.
    """
    numbers = [number for number, _ in listed]
    if not numbers or numbers != sorted(set(numbers)):
        raise S3Error(400, "InvalidPartOrder", "parts have to be listed in ascending order")
    offset, generation = 0, None
    kept = _kept(key, [parts[number] for number in numbers if number in parts])
    for number, etag in listed:
        part = parts.get(number)
        if part is None or etag.strip('"') != etag_of(part).strip('"'):
            raise S3Error(400, "InvalidPart", f"there is no part {number} with this entity tag")
        if part.size < MIN_PART_BYTES and number != numbers[-1]:
            raise S3Error(400, "EntityTooSmall", f"part {number} is smaller than 5 MiB")
        if verifies and kept is None:
            generation = _fits(key, number, part, offset, generation)
        offset += part.size
    return StoredObject(key=key, size=offset, generation=generation or 0, verbatim=kept)


def _kept(key: str, parts: Sequence[UploadCheck]) -> bytes | None:
    """Return the object that its parts make as it is; None if its bytes are to be keystream."""
    short = [part.verbatim for part in parts if part.verbatim is not None]
    foreign = declared_size(key) is None and len(short) == len(parts)
    return b"".join(short) if foreign else None


def _fits(
    key: str, number: int, part: UploadCheck, offset: int, generation: int | None
) -> int | None:
    """Return the generation of the parts so far, this one included."""
    found_offset, found_generation = part.offset, part.generation
    if part.verbatim is not None:
        keystream = matching(key, offset, memoryview(part.verbatim))
        found_offset = None if keystream is None else offset
        found_generation = None if keystream is None else keystream.generation
    if found_offset != offset:
        raise S3Error(
            400, "BadDigest", f"part {number} holds bytes from {found_offset}, not from {offset}"
        )
    if generation is not None and found_generation != generation:
        raise S3Error(400, "BadDigest", f"part {number} is of another generation")
    return found_generation


@dataclass
class _LoopbackBucket:
    kept: dict[str, "int | StoredObject"] = field(default_factory=dict)
    """By key; of keys that declare their size version and generation are all there is to know."""
    order: list[str] | None = None
    """The keys as listings have them; None after a key came or went."""
    uploads: dict[str, Upload] = field(default_factory=dict)


class ObjectTable:
    """All buckets of one server; threads may share it.

    Parameters
    ----------
    strict
        Whether only what was written exists. If not, every object whose key declares its
        size can be read.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._buckets: defaultdict[str, _LoopbackBucket] = defaultdict(_LoopbackBucket)
        self._lock = threading.Lock()
        # Microseconds since the epoch at first, as Google counts: another server goes on higher.
        self._versions = count(wall_ns() // 1000)

    def buckets(self) -> list[str]:
        """Return the names of the buckets that anything was written to."""
        with self._lock:
            return sorted(self._buckets)

    def count(self) -> int:
        """Return how many objects were written and not deleted."""
        with self._lock:
            return sum(len(bucket.kept) for bucket in self._buckets.values())

    def find(self, bucket: str, key: str, *, written: bool = False) -> StoredObject | None:
        """Return what an object holds; None if there is none.

        Parameters
        ----------
        bucket, key
            Which.
        written
            Whether only what was written counts, as for conditions.
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
        """Note that an object was written, and return it with its version.

        Parameters
        ----------
        bucket, content
            What, and where.
        if_version
            The version that it has to have before, ``ABSENT`` for none; None for any. If it is
            another one nothing is written, and None returned.
        """
        key = content.key
        plain = content.verbatim is None and not content.copy_of
        plain = plain and declared_size(key) == content.size
        with self._lock:
            stored = self._buckets[bucket]
            if not self._has_version(stored.kept.get(key), if_version):
                return None
            if key not in stored.kept:
                stored.order = None
            written = replace(content, version=next(self._versions))
            packed = written.version << _GENERATION_BITS | written.generation
            stored.kept[key] = packed if plain else written
            return written

    def delete(self, bucket: str, key: str, *, if_version: int | None = None) -> bool:
        """Forget that an object was written; False if it has another version than it must."""
        with self._lock:
            stored = self._buckets[bucket]
            if not self._has_version(stored.kept.get(key), if_version):
                return False
            if stored.kept.pop(key, None) is not None:
                stored.order = None
            return True

    def has_version(self, bucket: str, key: str, version: int) -> bool:
        """Tell whether an object has this version now."""
        with self._lock:
            return self._has_version(self._buckets[bucket].kept.get(key), version)

    def _has_version(self, entry: "int | StoredObject | None", version: int | None) -> bool:
        if version is None:
            return True
        if entry is None:
            return version == ABSENT or (version == _NEVER_WRITTEN and not self._strict)
        found = entry.version if isinstance(entry, StoredObject) else entry >> _GENERATION_BITS
        return found == version

    def page(
        self, bucket: str, prefix: str, after: str, limit: int, *, unordered: bool = False
    ) -> tuple[list[str], bool]:
        """Return up to ``limit`` keys with ``prefix`` after ``after``, and if more follow.

        They are in the order of listings; or, ``unordered``, in another one.
        """
        with self._lock:
            stored = self._buckets[bucket]
            if stored.order is None:
                # S3 lists in the order of UTF-8 bytes, which is that of code points.
                stored.order = sorted(stored.kept)
            order = stored.order
        if unordered:
            # By the hash of a key, which is like no order of S3's.
            places = sorted((hash_key(key), key) for key in order if key.startswith(prefix))
            rest = places[bisect_right(places, (hash_key(after), after)) if after else 0 :]
            return [key for _, key in rest[:limit]], len(rest) > limit
        begin = max(bisect_left(order, prefix), bisect_right(order, after) if after else 0)
        keys = order[begin : begin + limit + 1]
        mine = [key for key in keys if key.startswith(prefix)]
        return mine[:limit], len(mine) > limit

    def begin_upload(self, bucket: str, key: str) -> str:
        """Begin an upload in parts and return its id."""
        upload = Upload(upload_id=secrets.token_hex(16), key=key)
        with self._lock:
            self._buckets[bucket].uploads[upload.upload_id] = upload
        return upload.upload_id

    def upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        """Return an open upload.

        Raises
        ------
        S3Error
            If there is none of this key and id.
        """
        with self._lock:
            found = self._buckets[bucket].uploads.get(upload_id)
        if found is None or found.key != key:
            raise S3Error(404, "NoSuchUpload", "this upload is not open")
        return found

    def end_upload(self, bucket: str, upload_id: str) -> None:
        """Forget an upload."""
        with self._lock:
            self._buckets[bucket].uploads.pop(upload_id, None)

    def uploads(self, bucket: str, prefix: str) -> Iterator[Upload]:
        """Yield the open uploads of keys with ``prefix``, by key and id."""
        with self._lock:
            found = list(self._buckets[bucket].uploads.values())
        for upload in sorted(found, key=lambda upload: (upload.key, upload.upload_id)):
            if upload.key.startswith(prefix):
                yield upload
