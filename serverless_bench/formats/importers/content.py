"""Open a file of another tool: an op-log, plain or compressed, or a pickle."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from serverless_bench.errors import UsageError
from serverless_bench.formats.importers.base import PickledData
from serverless_bench.formats.importers.oplog import OpLog, read_oplog
from serverless_bench.formats.importers.plain import MAX_PICKLE_BYTES, load_plain
from serverless_bench.plugins import extra
from serverless_bench.user_files import open_regular, reason

Content = OpLog | PickledData

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""RFC 8878, section 3.1.1: a frame's magic number."""
_FREE_BYTES: Final = 16 << 20
_MAX_RATIO: Final = 100
"""Ten kilobytes may become gigabytes: instants, keys and ids of a log are never so much alike."""
_OPLOG: Final = b"idx\t"


def open_content(path: Path) -> Content:
    """Return what a file holds, by its first bytes.

    Raises
    ------
    UsageError
        If it cannot be read, or is neither an op-log nor a plain pickle.
    PluginError
        If it is compressed and the library for that is not installed.
    """
    try:
        with open_regular(path) as file, _plain_stream(path, file) as stream:
            return _content(path, stream)
    except OSError as exc:
        raise UsageError(
            f"cannot read {path}: {reason(exc)}", hint="name a file that exists"
        ) from exc


def _content(path: Path, stream: io.BufferedReader) -> Content:
    head = stream.peek(len(_OPLOG))[:256]
    if head.startswith(_OPLOG):
        with io.TextIOWrapper(stream, "utf-8", "replace", newline="\n") as lines:
            return read_oplog(path, lines)
    if head.lstrip().startswith(b"{"):
        raise UsageError(
            f"{path} is JSON, not an op-log",
            hint="warp saves its requests with --full; what it saves otherwise has none",
        )
    data = stream.read(MAX_PICKLE_BYTES + 1)
    if len(data) > MAX_PICKLE_BYTES:
        raise UsageError(
            f"{path} is no op-log, and too large for a pickle of results",
            hint=f"pickles of up to {MAX_PICKLE_BYTES >> 20} MiB are imported",
        )
    return PickledData(path=path, value=load_plain(path, data))


class _Decompressed(io.RawIOBase):
    """What a compressed file holds, as long as that is in proportion to the file.

    Parameters
    ----------
    path
        The file, for the message.
    file
        Where the compressed bytes come from.
    plain
        Where the others come out.
    """

    def __init__(self, path: Path, file: BinaryIO, plain: BinaryIO) -> None:
        self._path, self._file, self._plain = path, file, plain
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as io declares it
        data = self._plain.read(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > _FREE_BYTES + _MAX_RATIO * self._file.tell():
            raise UsageError(
                f"{self._path} is refused: decompressed it is more than {_MAX_RATIO} times larger",
                hint="op-logs become 10 to 20 times smaller; if it is one, decompress it before",
            )
        return len(data)


@contextmanager
def _plain_stream(path: Path, file: io.BufferedReader) -> Iterator[io.BufferedReader]:
    """Yield the bytes of a file, decompressed if need be."""
    compressed = file.read(len(_ZSTD)) == _ZSTD
    file.seek(0)
    if not compressed:
        yield file
        return
    with extra("warp", f"{path}", otherwise=", or decompress it with zstd -d"):
        import zstandard  # noqa: PLC0415 - an extra
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as plain:
            yield io.BufferedReader(_Decompressed(path, file, plain))
    except zstandard.ZstdError as exc:
        raise UsageError(
            f"{path} is cut off or damaged: {exc}", hint="check it with zstd -t"
        ) from exc
