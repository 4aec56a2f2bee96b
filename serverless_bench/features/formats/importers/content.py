"""Open a file of another tool: an op-log, plain or compressed, or a pickle, which is not run.

A pickle is a program: it may refer to any class or function and call it. Results of benchmarks
do not need this, so this module supports only the instructions for numbers, text, lists, tuples
and dicts, and rejects a pickle at the first other instruction. ``pickle.Unpickler`` with a
``find_class`` that raises is not enough: tuples nested 200,000 deep, as a key, end the
interpreter with a segmentation fault (CPython 3.11), and a single PUT with a large index takes
gigabytes for the memo.
"""

import io
import pickletools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import extra
from serverless_bench.base.user_files import open_regular, reason
from serverless_bench.features.formats.importers.base import PickledData
from serverless_bench.features.formats.importers.oplog import OpLog, read_oplog

Content = OpLog | PickledData

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""Magic number of a frame (RFC 8878, section 3.1.1)."""
_FREE_BYTES: Final = 16 << 20
_MAX_RATIO: Final = 100
"""Maximum ratio of decompression: a log with varying instants, keys and ids stays far below."""
_OPLOG: Final = b"idx\t"
_PICKLE: Final = b"\x80"
"""First byte of a pickle since protocol 2."""


def open_content(path: Path) -> Content:
    """Detect the format of a file by the first bytes, and return the content.

    Raises
    ------
    UsageError
        If it cannot be read, or is neither an op-log nor a plain pickle.
    PluginError
        If it is compressed and the library for this is not installed.
    """
    try:
        with open_regular(path) as file, _plain_stream(path, file) as stream:
            return _content(path, stream)
    except OSError as exc:
        raise UsageError(
            f"cannot read {path}: {reason(exc)}", hint="give a file that exists"
        ) from exc


def _content(path: Path, stream: io.BufferedReader) -> Content:
    head = stream.peek(len(_OPLOG))[:256]
    if head.startswith(_OPLOG):
        with io.TextIOWrapper(stream, "utf-8", "replace", newline="\n") as lines:
            return read_oplog(path, lines)
    if head.lstrip().startswith(b"{"):
        raise UsageError(
            f"{path} is JSON, not an op-log",
            hint="run warp with --full; its other files do not contain requests",
        )
    data = stream.read(MAX_PICKLE_BYTES + 1)
    if len(data) > MAX_PICKLE_BYTES:
        raise UsageError(
            f"{path} is not an op-log, and too large for a pickle of results",
            hint=f"pickles of up to {MAX_PICKLE_BYTES >> 20} MiB are imported",
        )
    return PickledData(path=path, value=load_plain(path, data))


class _Decompressed(io.RawIOBase):
    """Content of a compressed file, with a limit in proportion to the file.

    Parameters
    ----------
    path
        The file, for the message.
    file
        Source of the compressed bytes.
    plain
        Source of the decompressed bytes.
    """

    def __init__(self, path: Path, file: BinaryIO, plain: BinaryIO) -> None:
        self._path, self._file, self._plain = path, file, plain
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._plain.read(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > _FREE_BYTES + _MAX_RATIO * self._file.tell():
            raise UsageError(
                f"{self._path} is rejected: decompressed it is more than {_MAX_RATIO} times larger",
                hint="op-logs shrink by a factor of 10 to 20; decompress a valid one first",
            )
        return len(data)


@contextmanager
def _plain_stream(path: Path, file: io.BufferedReader) -> Iterator[io.BufferedReader]:
    """Yield the bytes of a file, decompressed if necessary."""
    compressed = file.read(len(_ZSTD)) == _ZSTD
    file.seek(0)
    if not compressed:
        yield file
        return
    with extra("warp", f"{path}", otherwise=", or decompress it with zstd -d"):
        import zstandard
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as plain:
            yield io.BufferedReader(_Decompressed(path, file, plain))
    except zstandard.ZstdError as exc:
        raise UsageError(
            f"{path} is cut off or damaged: {exc}", hint="check it with zstd -t"
        ) from exc


MAX_PICKLE_BYTES: Final = 64 << 20
"""Maximum size: Lithops saves 500 bytes per function; this holds a hundred thousand functions."""
MAX_INSTRUCTIONS: Final = 4_000_000
"""Maximum number of instructions; Lithops needs 34 per function. An instruction of one byte may
create 90 bytes in memory.
"""
_MAX_MARKS: Final = 1000
"""Maximum depth of nested tuples, lists and dicts."""

_LITERALS: Final = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "FLOAT",
        "BINFLOAT",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
    ]
)


def load_plain(path: Path, data: bytes) -> object:
    """Return the numbers, text, lists, tuples and dicts in a pickle.

    Parameters
    ----------
    path
        File of the pickle, for messages.
    data
        The complete pickle.

    Raises
    ------
    UsageError
        If it holds anything else, or is damaged.
    """
    try:
        machine = _Machine()
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name not in _STEPS:
                # A text may begin with the letter of an instruction.
                _refuse(path, opcode.name, argument, is_text=not (number or data[:1] == _PICKLE))
            if number >= MAX_INSTRUCTIONS:
                _refuse_length(path)
            _STEPS[opcode.name](machine, argument)
        (value,) = machine.stack
    except UsageError:
        raise
    except Exception as exc:  # a damaged pickle may raise any exception in pickletools
        raise UsageError(
            f"{path} is not an op-log, and not a complete pickle: another file, cut off or damaged",
            hint="import a file that PyWren, Lithops, warp, sai3-bench or sbench wrote",
        ) from exc
    return value


def _refuse(path: Path, name: str, argument: object, *, is_text: bool) -> NoReturn:
    if is_text:
        raise ValueError("not a pickle")
    named = f" ({str(argument)[:80]})" if name in {"GLOBAL", "INST"} else ""
    raise UsageError(
        f"{path} is rejected: it is not plain data, as it holds a {name}{named}",
        hint="a pickle can run code; results are numbers, text, lists and dicts",
    )


def _refuse_length(path: Path) -> NoReturn:
    raise UsageError(
        f"{path} is rejected: it has more than {MAX_INSTRUCTIONS} instructions",
        hint="results of a hundred thousand functions have fewer",
    )


class _Machine:
    """The stack, the marks and the memo; invalid instructions raise an exception."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def push(self, value: object) -> None:
        self.stack.append(value)

    def put(self, place: int | None) -> None:
        self._memo[len(self._memo) if place is None else place] = self.stack[-1]

    def get(self, place: int) -> None:
        self.stack.append(self._memo[place])

    def mark(self) -> None:
        if len(self._below) >= _MAX_MARKS:
            raise ValueError("nested too deeply")
        self._below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self._below.pop()
        return items

    def take(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def extend_list(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError("items without a list")
        target.extend(items)

    def extend_dict(self, items: list[Any]) -> None:
        target = self.stack[-1]
        keys = items[::2]
        # Text only: the hash of a key is the only place in which data could cause an effect.
        if not isinstance(target, dict) or not all(isinstance(key, str) for key in keys):
            raise TypeError("items without a dict")
        target.update(zip(keys, items[1::2], strict=True))

    def new_dict(self) -> None:
        items = self.since_mark()
        self.stack.append({})
        self.extend_dict(items)


_STEPS: Final[Mapping[str, Callable[[_Machine, Any], None]]] = {
    **dict.fromkeys(_LITERALS, _Machine.push),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(("FRAME", "PROTO", "STOP"), lambda _machine, _argument: None),
    "APPEND": lambda machine, _: machine.extend_list(machine.take(1)),
    "APPENDS": lambda machine, _: machine.extend_list(machine.since_mark()),
    "DICT": lambda machine, _: machine.new_dict(),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "LIST": lambda machine, _: machine.push(machine.since_mark()),
    "MARK": lambda machine, _: machine.mark(),
    "NEWFALSE": lambda machine, _: machine.push(False),  # noqa: FBT003 - the value it stands for
    "NEWTRUE": lambda machine, _: machine.push(True),  # noqa: FBT003 - as above
    "NONE": lambda machine, _: machine.push(None),
    "SETITEM": lambda machine, _: machine.extend_dict(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.extend_dict(machine.since_mark()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.take(1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.take(2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.take(3))),
}
"""Effects of the supported instructions."""
