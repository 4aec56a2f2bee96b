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
_CONSTANTS: Final[Mapping[str, Callable[[], object]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
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
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name not in _KNOWN:
                _refuse(path, opcode.name, argument)
            machine.step(opcode.name, argument)
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


class _Machine:
    """The stack, the marks on it and the memo; anything out of order raises an exception."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:  # noqa: ANN401 - what an opcode carries
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _PUTS:
            self._memo[len(self._memo) if argument is None else argument] = self.stack[-1]
        elif name in _GETS:
            self.stack.append(self._memo[argument])
        else:
            _STEPS[name](self)

    def mark(self) -> None:
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

    def push(self, value: object) -> None:
        self.stack.append(value)


_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_STEPS: Final[Mapping[str, Callable[[_Machine], None]]] = {
    "APPEND": lambda machine: machine.extend_list(machine.take(1)),
    "APPENDS": lambda machine: machine.extend_list(machine.since_mark()),
    "DICT": _Machine.new_dict,
    "FRAME": lambda _: None,
    "LIST": lambda machine: machine.push(machine.since_mark()),
    "MARK": _Machine.mark,
    "PROTO": lambda _: None,
    "SETITEM": lambda machine: machine.extend_dict(machine.take(2)),
    "SETITEMS": lambda machine: machine.extend_dict(machine.since_mark()),
    "STOP": lambda _: None,
    "TUPLE": lambda machine: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine: machine.push(tuple(machine.take(1))),
    "TUPLE2": lambda machine: machine.push(tuple(machine.take(2))),
    "TUPLE3": lambda machine: machine.push(tuple(machine.take(3))),
}
_KNOWN: Final = _LITERALS | set(_CONSTANTS) | _PUTS | _GETS | set(_STEPS)
