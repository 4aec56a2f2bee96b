"""Object keys: how they are made, what they say, and the key files that list them.

A key is ``PREFIX HEX . SIZE``: 32 hexadecimal digits that nobody can predict, a dot and
the object's size in bytes. The digits spread the objects over the store's partitions;
the size lets a reader see from the key alone that an object was truncated.

Keys derive from the run id, which is fresh for every run, and never from the seed: two
runs with one seed must not overwrite each other.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from serverless_bench.clock import utc_stamp
from serverless_bench.errors import UsageError

_OURS: Final = re.compile(r"(?:.*/)?[0-9a-f]{32}\.([1-9][0-9]{0,15})", re.DOTALL)
_MAX_KEY_BYTES: Final = 1024
"""Amazon S3 user guide, "Naming Amazon S3 objects": at most 1,024 bytes of UTF-8."""


def new_run_id(created_ns: int) -> str:
    """Return an id that no other run has: when it began, and 48 random bits."""
    return f"{utc_stamp(created_ns)}-{secrets.token_hex(6)}"


def object_key(
    *, prefix: str, run_id: str, index: int, attempt: int, number: int, size: int
) -> str:
    """Return the key of the ``number``-th object that an invocation attempt writes."""
    name = f"{run_id}/{index}/{attempt}/{number}"
    digits = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    return f"{prefix}{digits}.{size}"


def declared_size(key: str) -> int | None:
    """Return the size that a key declares; None if sbench did not make this key."""
    match = _OURS.fullmatch(key)
    return int(match[1]) if match else None


def write_key_file(path: Path, keys: Iterable[str]) -> None:
    """Write one key per line, PyWren's format of 2016."""
    path.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")


def read_key_file(path: Path) -> list[str]:
    """Return the keys of a file that has one key per line.

    Raises
    ------
    UsageError
        If the file is missing, empty, or has a line that cannot be a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} is not a key file: it is not text",
            hint="a key file has one object key per line; sbench write --key-file makes one",
        ) from None
    except OSError as exc:
        raise UsageError(
            f"cannot read the key file {path}: {exc.strerror}",
            hint="sbench write --key-file makes one",
        ) from exc
    keys = list(_checked_lines(path, text))
    if not keys:
        raise UsageError(f"the key file {path} has no keys", hint="it needs one key per line")
    return keys


def _checked_lines(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        key = line.removesuffix("\r")
        if not key:
            continue
        if not key.isprintable() or len(key.encode()) > _MAX_KEY_BYTES:
            raise UsageError(
                f"{path}, line {number} is not an object key",
                hint="a key file has one printable key per line, of at most 1024 bytes",
            )
        yield key
