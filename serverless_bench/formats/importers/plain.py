"""Read a pickle without running it.

A pickle is a program: it may name any class or function and call it. What benchmarks
save needs none of that, so this knows only the instructions that build numbers, text,
lists, tuples and dicts, and refuses a pickle at the first other one.
``pickle.Unpickler`` with a ``find_class`` that refuses is not enough: tuples nested
200,000 deep, as a key, end the interpreter with a segmentation fault (CPython 3.11), and
one PUT with a large index takes gigabytes for its memo.
"""

import pickletools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from serverless_bench.errors import UsageError

MAX_PICKLE_BYTES: Final = 64 << 20
"""Lithops saves 500 bytes per function; this is a hundred thousand functions."""
MAX_INSTRUCTIONS: Final = 4_000_000
"""Lithops needs 34 per function. An instruction may be one byte, of which 90 in memory are made."""
_MAX_MARKS: Final = 1000
"""Tuples, lists and dicts that are begun in one another."""

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
_NAMES: Final = frozenset({"GLOBAL", "INST"})


def load_plain(path: Path, data: bytes) -> object:
    """Return the numbers, text, lists, tuples and dicts that a pickle holds.

    Parameters
    ----------
    path
        Where the pickle is from, for messages.
    data
        All of it.

    Raises
    ------
    UsageError
        If it holds anything else, or is damaged.
    """
    try:
        machine = _Machine()
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name not in _STEPS:
                _refuse(path, opcode.name, argument)
            if number >= MAX_INSTRUCTIONS:
                _refuse_length(path)
            _STEPS[opcode.name](machine, argument)
        (value,) = machine.stack
    except UsageError:
        raise
    except Exception as exc:  # whatever a damaged pickle makes of pickletools
        raise UsageError(
            f"{path} is no whole pickle: it is cut off or damaged",
            hint="import a file that PyWren, Lithops or sbench --pickle wrote",
        ) from exc
    return value


def _refuse(path: Path, name: str, argument: object) -> NoReturn:
    named = f" ({str(argument)[:80]})" if name in _NAMES else ""
    raise UsageError(
        f"{path} is refused: it is not plain data, it holds a {name}{named}",
        hint="a pickle can run code; results are numbers, text, lists and dicts",
    )


def _refuse_length(path: Path) -> NoReturn:
    raise UsageError(
        f"{path} is refused: it has more than {MAX_INSTRUCTIONS} instructions",
        hint="results of a hundred thousand functions have fewer",
    )


class _Machine:
    """The stack, the marks on it and the memo; anything out of order raises an exception."""

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
            raise TypeError("items of no list")
        target.extend(items)

    def extend_dict(self, items: list[Any]) -> None:
        target = self.stack[-1]
        keys = items[::2]
        # Text only: hashing a key is the one place where data could do something.
        if not isinstance(target, dict) or not all(isinstance(key, str) for key in keys):
            raise TypeError("items of no dict")
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
"""What each instruction does that is known."""
