"""Object keys: format and creation of keys, and the key files that list them.

A key is ``PREFIX HEX . SIZE``: 32 unpredictable hexadecimal digits, a dot and the object's size in
bytes. The digits spread the objects over the store's partitions; from the size, a reader can tell a
truncated object by the key.

Any key with this ending belongs to sbench, whatever the prefix: the user chooses the prefix, which
need not end in a slash. docs/decisions/0001 lists the alternatives.

The keys of objects that compress or repeat themselves end in the ratios, in hundredths: ``.z200``
compresses 2 : 1, ``.d400`` has 4 copies of each 4 KiB block, ``.z200d400`` has both; see
``payload``.

The layout determines the digits::

    random          hash of run, invocation, launch and number
    sharded:N       the same, in N folders: PREFIX 00/ HEX . SIZE
    sequential      12 digits of the run's hash, 8 of the invocation, 4 of its launch and
                    8 of the object's number: keys in the order of creation

A list of objects that sbench did not write may have their sizes: ``KEY TAB SIZE`` in a line. Such a
line declares no size, so that nobody expects the bytes of sbench there.

Keys derive from the run id, which is new for each run, and never from the seed: two runs with the
same seed must not overwrite each other.
"""

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import read_text
from serverless_bench.job.types import wrong

_OURS: Final = re.compile(
    r"[0-9a-f]{32}\.([1-9][0-9]{0,15})"
    r"(?:\.(?=[zd])(?:z([1-9][0-9]{2,3}))?(?:d([1-9][0-9]{2,4}))?)?\Z"
)
"""Ending of a key made by sbench."""
_BELOW: Final = re.compile(r"(.*[0-9a-f]{32}\.[1-9][0-9]{0,15})/.+", re.DOTALL)
_NOTE: Final = re.compile(r".*/barrier/(?:start(?:-[0-9]+)?|[0-9]+)", re.DOTALL)
NOTE: Final = b"+"
"""Start of the content of the objects that functions and driver leave for each other."""
MAX_NOTE_BYTES: Final = 24
MIN_PIECE_BYTES: Final = 128
"""Fewest neighbouring bytes that an object below a key keeps together: enough to identify them."""
MAX_COMPRESSIBILITY: Final = 50
MAX_DUPLICATION: Final = 100
_MAX_FOLDERS: Final = 65536
_FEW: Final = re.compile(r"\d{1,5}")
MAX_KEY_BYTES: Final = 1024
"""Amazon S3 user guide, "Naming Amazon S3 objects": at most 1,024 bytes of UTF-8."""
_MAX_KEY_FILE_BYTES: Final = 1 << 30
"""Size of a key file with ten million keys, the limit of a run."""
MAX_PREFIX_BYTES: Final = 900
"""Longest prefix that leaves room for the rest: chunks of arrays have up to 120 bytes."""


def new_run_id(created_ns: int) -> str:
    """Return a unique run id: the time of the start, and 48 random bits."""
    return f"{utc_stamp(created_ns)}-{os.urandom(6).hex()}"


def stamped_name(kind: str) -> str:
    """Return a name for the directory of a result: the time, its kind, and 16 random bits."""
    return f"{utc_stamp()}-{kind}-{os.urandom(2).hex()}"


def object_key(  # noqa: PLR0913 - a key depends on all of them
    *,
    prefix: str,
    run_id: str,
    index: int,
    launch: int,
    number: int,
    size: int,
    layout: str = "random",
    compressibility: float = 1.0,
    duplication: float = 1.0,
) -> str:
    """Return the key of the ``number``-th object that a launch of an invocation writes.

    Parameters
    ----------
    prefix, run_id, index, launch, number
        Identify the object.
    size
        Size of the object in bytes.
    layout
        ``random``, ``sharded:N`` or ``sequential``.
    compressibility, duplication
        Ratios of the object's bytes, 1.0 for none; see ``payload``.

    Raises
    ------
    UsageError
        If the layout or a ratio is invalid.
    """
    import hashlib

    folders = parse_layout(layout)
    name = f"{run_id}/{index}/{launch}/{number}"
    digits = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    if layout == "sequential":
        run = hashlib.blake2b(run_id.encode(), digest_size=6).hexdigest()
        digits = f"{run}{index:08x}{launch:04x}{number:08x}"
    folder = ""
    if folders:
        width = max(2, len(f"{folders - 1:x}"))
        folder = f"{int(digits, 16) % folders:0{width}x}/"
    return f"{prefix}{folder}{digits}.{size}{_suffix(compressibility, duplication)}"


def folder_of(key: str, folders: int) -> int:
    """Return the number of the folder that the layout ``sharded:FOLDERS`` puts a key into."""
    return int(key.rpartition("/")[2].partition(".")[0], 16) % folders


# Called very often with the same few texts, as is ``_suffix``.
@lru_cache(maxsize=64)
def parse_layout(text: str) -> int | None:
    """Return the number of folders that the keys of a layout use; None for no folders.

    Raises
    ------
    UsageError
        If ``text`` is not ``random``, ``sharded:N`` or ``sequential``.
    """
    if text in ("random", "sequential"):
        return None
    kind, _, count = text.partition(":")
    if kind == "sharded" and _FEW.fullmatch(count) and 1 <= int(count) <= _MAX_FOLDERS:
        return int(count)
    raise wrong(
        "layout",
        f"{text!r} is not a layout of keys",
        hint=f"write random, sequential, or sharded:N with 1 to {_MAX_FOLDERS} folders",
    )


def check_ratios(compressibility: float, duplication: float) -> None:
    """Check that a key can declare these ratios.

    Raises
    ------
    UsageError
        If a ratio is out of bounds.
    """
    for name, value, most in (
        ("compressibility", compressibility, MAX_COMPRESSIBILITY),
        ("duplication", duplication, MAX_DUPLICATION),
    ):
        if not 1 <= value <= most:
            raise wrong(
                name,
                f"must be between 1 and {most}, got {value:g}",
                hint="it is a ratio: 1 keeps all bytes, 2 halves them",
            )


def declared_size(key: str) -> int | None:
    """Return the size that a key declares; None if sbench did not make this key."""
    match = _OURS.search(key)
    return int(match[1]) if match else None


def listed(line: str) -> tuple[str, int | None]:
    """Return the key in a line of a list, and the size, which the line or the key may declare."""
    key, _, size = line.partition("\t")
    return key, int(size) if size.isdecimal() else declared_size(line)


def listed_sizes(lines: Iterable[str]) -> dict[str, int]:
    """Return the known sizes of listed objects by key."""
    return {key: size for key, size in map(listed, lines) if size is not None}


def parent_key(key: str) -> str | None:
    """Return the key with a size that an object lies below, as a chunk of an array does."""
    match = _BELOW.fullmatch(key)
    return match[1] if match else None


def is_note_key(key: str) -> bool:
    """Return whether a key belongs to a start barrier; no other key of a run has this form."""
    return _NOTE.fullmatch(key) is not None


def declared_ratios(key: str) -> tuple[int, int] | None:
    """Return compressibility and duplication in a key, in hundredths; None if it has neither."""
    if key.rpartition(".")[2].isdigit():
        # The key ends in the size: plain keystream, the usual case.
        return None
    match = _OURS.search(key)
    if match is None or (match[2] is None and match[3] is None):
        # Plain keystream, or not a key of sbench.
        return None
    return int(match[2] or 100), int(match[3] or 100)


@lru_cache(maxsize=64)
def _suffix(compressibility: float, duplication: float) -> str:
    check_ratios(compressibility, duplication)
    z, d = round(compressibility * 100), round(duplication * 100)
    text = (f"z{z}" if z > 100 else "") + (f"d{d}" if d > 100 else "")
    return f".{text}" if text else ""


def check_key(key: str) -> None:
    """Check that a text can be the key of an object that sbench reads or writes.

    Raises
    ------
    UsageError
        If it is empty, too long, or has characters that cannot be printed: a key file has one key
        per line.
    """
    if not is_key(key):
        raise UsageError(
            f"{key[:80]!r} is not an object key",
            hint=f"a key is printable, and has 1 to {MAX_KEY_BYTES} bytes",
        )


def is_key(text: str) -> bool:
    """Return whether a text can be a line of a key file."""
    key, _, size = text.partition("\t")
    sized = size.isdecimal() if "\t" in text else True
    return bool(key) and key.isprintable() and len(text.encode()) <= MAX_KEY_BYTES and sized


def check_prefix(prefix: str) -> None:
    """Check that all stores and libraries keep keys with this prefix unchanged.

    Many stores keep objects as files, and libraries write keys into URLs and paths: there ``a//b``,
    ``a/./b`` and ``/a/b`` may be the object ``a/b``.

    Raises
    ------
    UsageError
        If it is too long, has characters that cannot be printed, or segments that are empty, ``.``
        or ``..``.
    """
    if not prefix.isprintable():
        raise UsageError(
            f"the prefix {prefix[:80]!r} has characters that cannot be printed",
            hint="leave them out: a key file has one key per line",
        )
    if len(prefix.encode()) > MAX_PREFIX_BYTES:
        raise UsageError(
            f"the prefix has {len(prefix.encode())} bytes, at most {MAX_PREFIX_BYTES} allowed",
            hint=f"a key has at most {MAX_KEY_BYTES} bytes, including the part after the prefix",
        )
    if not {"", ".", ".."}.isdisjoint(prefix.split("/")[:-1]):
        raise UsageError(
            f"the prefix {prefix!r} has a segment that is empty, '.' or '..'",
            hint="some stores and libraries would change it; write it as in a/b/",
        )


def read_key_file(path: Path) -> list[str]:
    """Return the keys of a file that has one key per line.

    Raises
    ------
    UsageError
        If the file is missing, empty, or has a line that cannot be a key.
    """
    try:
        text = read_text(path, most_bytes=_MAX_KEY_FILE_BYTES)
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} is not a key file: it is not text",
            hint="a key file has one object key per line; create it with sbench write --key-file",
        ) from None
    except OSError as exc:
        raise UsageError(
            f"cannot read the key file {path}: {exc.strerror}",
            hint="create it with sbench write --key-file",
        ) from exc
    keys = []
    for number, line in enumerate(text.split("\n"), start=1):
        if key := line.removesuffix("\r"):
            if not is_key(key):
                raise UsageError(
                    f"{path}, line {number} is not an object key",
                    hint="a key file has one printable key per line, of at most 1024 bytes",
                )
            keys.append(key)
    if not keys:
        raise UsageError(f"the key file {path} has no keys", hint="it needs one key per line")
    return keys


def hash_key(key: str) -> int:
    """Return the 64-bit hash of an object key, the first part of its counter blocks."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())
