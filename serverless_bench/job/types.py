"""Check that the fields of a specification have values of their types."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_origin

from serverless_bench.errors import UsageError

WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list",
    NoneType: "None",
}
"""Types as a message names them."""


_ALSO: Final[Mapping[type, tuple[type, ...]]] = {float: (float, int), tuple: (tuple, list)}
"""What else is taken for a type; JSON has no tuples."""


def check_types(spec: Any) -> None:  # noqa: ANN401 - any dataclass
    """Refuse a value that is not of its field's type; make a text a member of its enumeration.

    Parameters
    ----------
    spec
        A dataclass whose fields are numbers, texts, lists, specifications or enumerations.

    Raises
    ------
    UsageError
        If a value is of another type; ``field`` is its name.
    """
    cls: type = type(spec)
    for name, accepted, words in _fields(cls):
        value = getattr(spec, name)
        kind = accepted[0]
        if issubclass(kind, StrEnum) and isinstance(value, str) and value in set(kind):
            object.__setattr__(spec, name, kind(value))
        elif not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            problem = f"`{name}` must be {words}, got {value!r}"
            hint = ""
            if isinstance(value, float) and value.is_integer() and int in accepted:
                hint = f"write it as {int(value)}"
            raise UsageError(problem, hint=hint, field=name)


@cache
def _fields(kind: type) -> tuple[tuple[str, tuple[type, ...], str], ...]:
    """Return name, accepted types and their words of every field of a dataclass."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind} is no dataclass")
    return tuple((each.name, _accepted(each.type), _words(each.type)) for each in fields(kind))


def _accepted(annotation: Any) -> tuple[type, ...]:  # noqa: ANN401 - a type or a type form
    found: list[type] = []
    for each in _members(annotation):
        found += _ALSO.get(each, (each,))
    return tuple(found)


def _words(annotation: Any) -> str:  # noqa: ANN401 - a type or a type form
    names = []
    for each in _members(annotation):
        if issubclass(each, StrEnum):
            names.append(f"one of {', '.join(each)}")
        else:
            names.append(WORDS.get(each) or f"a {each.__name__}")
    return " or ".join(names)


def _members(annotation: Any) -> tuple[type, ...]:  # noqa: ANN401 - a type or a type form
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return (annotation,)
    if get_origin(annotation) is tuple:
        return (tuple,)
    return tuple(get_origin(each) or each for each in get_args(annotation))


def wrong(name: str, problem: str, *, hint: str = "") -> UsageError:
    """Return the error that says what is wrong with one setting or field."""
    return UsageError(f"`{name}` {problem}", hint=hint, field=name)


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a number below ``least``."""
    if value < least:
        raise wrong(name, f"must be at least {least}, got {value}")


def positive(name: str, value: float) -> None:
    """Refuse a number that is not above zero."""
    if not value > 0:
        raise wrong(name, f"must be positive, got {value}")
