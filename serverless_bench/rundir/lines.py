"""Lines of the files of a run directory, as many as there are and no longer than they may be."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from serverless_bench.errors import ArchiveError
from serverless_bench.job.keys import MAX_KEY_BYTES
from serverless_bench.rundir.files import open_file

_PIECE: Final = 1 << 20
_MAX_LINE_BYTES: Final = 1 << 28
"""Of a record: some hundred thousand operations."""
_AT_ONCE: Final = 1 << 16
_HINT: Final = "one line per key, as sbench wrote them; what was put there since has to go"


def read_lines(path: Path) -> list[str]:
    """Return the keys in a file, one per line; none if there is no such file.

    Raises
    ------
    ArchiveError
        If it cannot be read, or a line cannot be a key.
    """
    try:
        with open_file(path) as file:
            data = b"".join(_pieces(path, file))
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise ArchiveError(f"cannot read {path}: {exc.strerror}") from exc
    # What stands behind the last line break was cut off: half a key is nobody's key.
    whole = data[: data.rfind(b"\n") + 1]
    try:
        lines = whole.decode().split("\n")[:-1]
    except UnicodeDecodeError as exc:
        raise _wrong(path, whole.count(b"\n", 0, exc.start), "is not UTF-8") from None
    for begin in range(0, len(lines), _AT_ONCE):
        _check_keys(path, lines[begin : begin + _AT_ONCE], begin)
    return [line for line in lines if line]


def record_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of records; of one that is none, as much as shows that."""
    while piece := file.readline(_PIECE):
        if len(piece) < _PIECE or piece.endswith(b"\n"):
            yield piece
            continue
        pieces, size = [piece], len(piece)
        while not piece.endswith(b"\n") and (piece := file.readline(_PIECE)):
            if b"\0" in piece:
                # A hole in the file, which may be of any length: no JSON has such bytes.
                yield b"\0"
                return
            size += len(piece)
            if size <= _MAX_LINE_BYTES:
                pieces.append(piece)
        yield b"".join(pieces)


def _pieces(path: Path, file: BinaryIO) -> Iterator[bytes]:
    number = 0
    while piece := file.read(_PIECE):
        if b"\0" in piece:
            raise _wrong(path, number + piece.count(b"\n", 0, piece.index(b"\0")), "is no text")
        number += piece.count(b"\n")
        yield piece


def _check_keys(path: Path, lines: list[str], first: int) -> None:
    if "".join(lines).isprintable() and max(map(len, lines)) <= MAX_KEY_BYTES:
        return
    for number, line in enumerate(lines, first):
        if not line.isprintable():
            raise _wrong(path, number, f"has characters that cannot be printed: {line[:80]!r}")
        if len(line) > MAX_KEY_BYTES:
            raise _wrong(path, number, f"has {len(line)} characters, a key has {MAX_KEY_BYTES}")


def _wrong(path: Path, number: int, problem: str) -> ArchiveError:
    return ArchiveError(f"{path}, line {number + 1} {problem}", hint=_HINT)
