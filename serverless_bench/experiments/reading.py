"""A table of a TOML file that wants to be read to its end."""

from collections.abc import Collection, Mapping
from math import inf
from typing import Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.experiments.schema import Setting, Value
from serverless_bench.units import parse_size

_MUST: Final = object()


class Reader:
    """Takes the keys of a table one by one; what is left in the end is an error.

    Parameters
    ----------
    data
        The table.
    where
        What errors call it.
    """

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data = dict(data)
        self._read: list[str] = []
        self.where = where

    def error(self, what: str) -> UsageError:
        """Return an error about this table."""
        return UsageError(f"{self.where}: {what}", hint="docs/experiments/README.md has the keys")

    def has(self, key: str) -> bool:
        """Tell whether a key is there."""
        return key in self._data

    def raw(self, key: str, kind: Any, default: Any = _MUST) -> Any:  # noqa: ANN401 - TOML
        """Return a value of a kind, or the default.

        Raises
        ------
        UsageError
            If it is of another kind, or is missing and has no default.
        """
        self._read.append(key)
        if key not in self._data:
            if default is _MUST:
                raise self.error(f"does not say {key}")
            return default
        value = self._data.pop(key)
        # A bool is an int to Python, but not to whoever writes true for a number.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
            raise self.error(f"{key} cannot be {value!r}")
        return value

    def text(self, key: str, default: Any = _MUST) -> str:  # noqa: ANN401 - text or a mark
        """Return a text; a date is one, too."""
        return str(self.raw(key, object, default))

    def flag(self, key: str) -> bool:
        """Return a truth, false if the table does not say."""
        value = self.raw(key, object, default=False)
        if not isinstance(value, bool):
            raise self.error(f"{key} is true or false, not {value!r}")
        return value

    def choice(self, key: str, known: Collection[str], default: Any = _MUST) -> str:  # noqa: ANN401
        """Return one of several words."""
        value = self.text(key, default)
        if value not in known:
            raise self.error(f"{key} is one of {', '.join(filter(None, known))}, not {value!r}")
        return value

    def whole(self, key: str, default: int) -> int:
        """Return a number from 1 up."""
        value = self.raw(key, int, default)
        if value < 1:
            raise self.error(f"{key} must be at least 1, not {value}")
        return int(value)

    def amount(self, key: str, default: float) -> float:
        """Return a number from 0 up."""
        value = float(self.raw(key, int | float, default))
        if not 0 <= value < inf:
            raise self.error(f"{key} must be at least 0, not {value:g}")
        return value

    def size(self, key: str, default: Any = _MUST) -> int:  # noqa: ANN401 - as in raw
        """Return bytes: a number, or a text with a unit."""
        value = self.raw(key, int | str, default)
        return parse_size(str(value)) if value else 0

    def values(self, key: str, default: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return a list of values of an axis."""
        return tuple(as_value(one, self.where) for one in self.raw(key, list | tuple, default))

    def point(self, key: str) -> dict[str, Value]:
        """Return values by axis."""
        return {name: as_value(one, self.where) for name, one in self.raw(key, dict, {}).items()}

    def table(self, key: str) -> "Reader":
        """Return a table inside this one."""
        return Reader(self.raw(key, dict), f"{self.where}, {key}")

    def tables(self, key: str) -> list["Reader"]:
        """Return a list of tables; empty if there are none."""
        found = self.raw(key, list, [])
        if not all(isinstance(one, dict) for one in found):
            raise self.error(f"{key} is written as [[{key}]]")
        return [Reader(one, f"{self.where}, {key} {n}") for n, one in enumerate(found, 1)]

    def end(self) -> None:
        """Refuse what nobody has read.

        Raises
        ------
        UsageError
            If a key is left.
        """
        if self._data:
            left = ", ".join(map(repr, self._data))
            raise self.error(f"there is no {left}; known: {', '.join(self._read)}")


def as_value(value: object, where: str) -> Value:
    """Return a value of an axis.

    Raises
    ------
    UsageError
        If it is a table, a list or a date.
    """
    if isinstance(value, str | int | float):
        return value
    raise UsageError(f"{where}: {value!r} is no text, number or truth")


def as_settings(data: Mapping[str, Any], where: str) -> dict[str, Setting]:
    """Return a table, and the tables in it, as one with dotted names.

    Raises
    ------
    UsageError
        If a value is none of text, number, truth or a list of these.
    """
    found: dict[str, Setting] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            inner = as_settings(value, where)
            found |= {f"{name}.{key}": one for key, one in inner.items()}
        elif isinstance(value, list):
            found[name] = tuple(as_value(one, where) for one in value)
        else:
            found[name] = as_value(value, where)
    return found
