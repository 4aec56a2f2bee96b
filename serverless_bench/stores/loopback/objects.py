"""Which objects there are: their keys, and of each what its bytes can be made from.

A key that declares its size costs what its text costs, about 100 bytes, and an entry of
a dictionary.
"""

import secrets
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from serverless_bench.job.keys import declared_size, hash_key
from serverless_bench.payload.shaped import content_of
from serverless_bench.stores.loopback.answers import S3Error
from serverless_bench.stores.loopback.parts import Upload


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What an object holds."""

    key: str
    size: int
    generation: int = 0
    verbatim: bytes | None = None
    """The bytes themselves; None if they are the keystream of the key."""

    @property
    def etag(self) -> str:
        """An entity tag that is another one when the bytes are."""
        own = self.generation if self.verbatim is None else hash(self.verbatim) & 0xFFFFFFFF
        return f'"{hash_key(self.key):016x}-{self.size:x}-{own:x}"'

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""
        if self.verbatim is None:
            content_of(self.key, self.generation).readinto_at(offset, buffer)
        else:
            buffer[:] = self.verbatim[offset : offset + len(buffer)]


@dataclass
class _Bucket:
    kept: dict[str, "int | Content"] = field(default_factory=dict)
    """By key; of keys that declare their size the generation is all there is to know."""
    order: list[str] | None = None
    """The keys as listings have them; None after a key came or went."""
    uploads: dict[str, Upload] = field(default_factory=dict)


class Objects:
    """All buckets of one server; threads may share it.

    Parameters
    ----------
    strict
        Whether only what was written exists. If not, every object whose key declares its
        size can be read.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def buckets(self) -> list[str]:
        """Return the names of the buckets that anything was written to."""
        with self._lock:
            return sorted(self._buckets)

    def count(self) -> int:
        """Return how many objects were written and not deleted."""
        with self._lock:
            return sum(len(bucket.kept) for bucket in self._buckets.values())

    def find(self, bucket: str, key: str, *, written: bool = False) -> Content | None:
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
        if isinstance(entry, Content):
            return entry
        size = declared_size(key)
        if size is None or (entry is None and (self._strict or written)):
            return None
        return Content(key=key, size=size, generation=entry or 0)

    def put(self, bucket: str, content: Content, *, only_new: bool = False) -> bool:
        """Note that an object was written; False if it exists and may not.

        Parameters
        ----------
        bucket, content
            What, and where.
        only_new
            As ``If-None-Match: *``.
        """
        key = content.key
        plain = content.verbatim is None and declared_size(key) == content.size
        with self._lock:
            room = self._bucket(bucket)
            if only_new and key in room.kept:
                return False
            if key not in room.kept:
                room.order = None
            room.kept[key] = content.generation if plain else content
            return True

    def delete(self, bucket: str, key: str) -> None:
        """Forget that an object was written."""
        with self._lock:
            room = self._bucket(bucket)
            if room.kept.pop(key, None) is not None:
                room.order = None

    def page(self, bucket: str, prefix: str, after: str, limit: int) -> tuple[list[str], bool]:
        """Return up to ``limit`` keys with ``prefix`` after ``after``, and if more follow."""
        with self._lock:
            room = self._bucket(bucket)
            if room.order is None:
                # S3 lists in the order of UTF-8 bytes, which is that of code points.
                room.order = sorted(room.kept)
            order = room.order
        begin = max(bisect_left(order, prefix), bisect_right(order, after) if after else 0)
        keys = order[begin : begin + limit + 1]
        mine = [key for key in keys if key.startswith(prefix)]
        return mine[:limit], len(mine) > limit

    def begin_upload(self, bucket: str, key: str) -> str:
        """Begin an upload in parts and return its id."""
        upload = Upload(upload_id=secrets.token_hex(16), key=key)
        with self._lock:
            self._bucket(bucket).uploads[upload.upload_id] = upload
        return upload.upload_id

    def upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        """Return an open upload.

        Raises
        ------
        S3Error
            If there is none of this key and id.
        """
        with self._lock:
            found = self._bucket(bucket).uploads.get(upload_id)
        if found is None or found.key != key:
            raise S3Error(404, "NoSuchUpload", "this upload is not open")
        return found

    def end_upload(self, bucket: str, upload_id: str) -> None:
        """Forget an upload."""
        with self._lock:
            self._bucket(bucket).uploads.pop(upload_id, None)

    def uploads(self, bucket: str, prefix: str) -> Iterator[Upload]:
        """Yield the open uploads of keys with ``prefix``, by key and id."""
        with self._lock:
            found = list(self._bucket(bucket).uploads.values())
        for upload in sorted(found, key=lambda upload: (upload.key, upload.upload_id)):
            if upload.key.startswith(prefix):
                yield upload

    def _bucket(self, name: str) -> _Bucket:
        return self._buckets.setdefault(name, _Bucket())
