"""Create specifications from JSON, and check the types of their fields."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache
from math import inf
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from serverless_bench.base.errors import UsageError, suggestion

T = TypeVar("T")
_WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "text",
    dict: "a table",
}
"""Names of types in messages."""
_PLURAL: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole numbers",
    float: "numbers",
    dict[str, Any]: "tables",
}


_ALSO: Final[Mapping[type, tuple[type, ...]]] = {float: (float, int), tuple: (tuple, list)}
"""Further Python types accepted for a type; JSON has no tuples."""
_BEYOND: Final = 1 << 63
_MOST_SHOWN: Final = 80
"""Longest value shown in a message, in characters."""


class Specification(type):
    """Class of a specification: a wrong or missing name of a field is a ``UsageError``."""

    if not TYPE_CHECKING:

        def __call__(cls, *values: object, **given: object) -> object:
            """Return the specification with these fields."""
            try:
                return super().__call__(*values, **given)
            except TypeError:
                parts = _parts(cls)
                for name in given.keys() - parts.keys():
                    what, hint = f"is no field of {cls.__name__}", suggestion(name, parts)
                    raise wrong(name, what, hint=hint) from None
                for name in (n for n, (_, needed) in parts.items() if needed and n not in given):
                    raise wrong(name, f"is missing: {cls.__name__} needs it") from None
                raise


class Limits(NamedTuple):
    """Bounds of a number, in the annotation of its field; None is always valid."""

    least: float = 0
    most: float = inf
    positive: bool = False
    """Whether it must be above zero."""
    hint: str = ""


def described(kind: type[T], data: object, where: str) -> T:
    """Return the specification that ``asdict``, and possibly JSON, converted to a table.

    Parameters
    ----------
    kind
        A dataclass; its fields may be specifications, too.
    data
        Values by field.
    where
        Name of the table in messages.

    Raises
    ------
    TypeError, ValueError
        If it is not a table, has an unknown field, or lacks one.
    UsageError
        If the value of a field is invalid.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"`{where}` must be a table")
    parts = _parts(cast("Any", kind))
    for name in data.keys() - parts.keys():
        raise ValueError(f"`{where}.{name[:_MOST_SHOWN]}` is unknown")
    values: dict[str, Any] = {}
    for name, (part, required) in parts.items():
        value = data.get(name)
        if name in data:
            if part is not None and value is not None:
                value = part(data, value, f"{where}.{name}")
            values[name] = value
        elif required:
            raise ValueError(f"`{where}.{name}` is missing")
    try:
        return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
    except UsageError as exc:
        # Prefix the field with its specification's name.
        exc.args = (str(exc).replace(f"`{exc.field}`", f"`{where}.{exc.field}`"),)
        raise


@cache
def _parts(kind: Any) -> Mapping[str, tuple[Any, bool]]:
    """Return the reader of each field with a specification, and whether it has no default.

    The metadata of a field may have a reader, which gets the whole table, too.
    """
    return {
        field.name: (
            field.metadata.get("read") or _reader(cast("Any", field.type)),
            MISSING is field.default and MISSING is field.default_factory,
        )
        for field in fields(kind)
    }


def _reader(annotation: Any) -> Any:
    kind = next(filter(is_dataclass, _members(_plain(annotation)[0])), None)
    return kind and (lambda _, value, where: described(kind, value, where))


def check_types(spec: Any) -> None:
    """Check values against the types of their fields; convert texts to members of enumerations.

    All texts must be printable, and all numbers must fit into 64 bits, at any depth.

    Parameters
    ----------
    spec
        A dataclass with fields of numbers, texts, lists, specifications or enumerations.

    Raises
    ------
    UsageError
        If a value has the wrong type; ``field`` is its name.
    """
    for field in fields(spec):
        name, value = field.name, getattr(spec, field.name)
        annotation, rule = _plain(cast("Any", field.type))
        members = _members(annotation)
        kind = members[0]
        if issubclass(kind, StrEnum) and isinstance(value, str) and value in set(kind):
            object.__setattr__(spec, name, kind(value))
        elif (type(value) not in members or tuple in members) and not _fits(annotation, value):
            hint = ""
            if isinstance(value, float) and value.is_integer() and int in members:
                hint = f"write it as {int(value)}"
            elif isinstance(value, str) and int in members:
                hint = "give a number; sbench.write and the like take texts such as 16MiB"
            raise wrong(name, f"must be {words(annotation)}, got {_shown(value)}", hint=hint)
        _check_value(name, value)
        if rule is not None and value is not None:
            _check_rule(name, value, rule)


@cache
def _plain(annotation: Any) -> tuple[Any, Any]:
    """Return a type without its annotations, and the limits or the choices among these."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    rules = (rule for rule in annotation.__metadata__ if is_rule(rule))
    return annotation.__origin__, next(rules, None)


def is_rule(annotation: object) -> bool:
    """Return whether an annotation of a field has the limits of a number, or choices of a text."""
    return isinstance(annotation, Limits) or get_origin(annotation) is Literal


def _check_rule(name: str, value: Any, rule: Any) -> None:
    if not isinstance(rule, Limits):
        if value not in (choices := get_args(rule)):
            raise wrong(name, f"must be {' or '.join(choices)}, got {_shown(value)}")
        return
    if rule.positive and not value > 0:
        raise wrong(name, f"must be positive, got {value}")
    at_least(name, value, rule.least, hint=rule.hint)
    at_most(name, value, rule.most)


def _check_value(name: str, value: object) -> None:
    """Check that a text can be printed and that a number is small enough to compute with."""
    if isinstance(value, str):
        check_text(name, value)
    elif isinstance(value, int | float):
        if not -_BEYOND <= value < _BEYOND:
            raise wrong(name, f"must be a number that fits into 64 bits, got {_shown(value)}")
    elif isinstance(value, tuple | list):
        for item in value:
            _check_value(name, item)


def _shown(value: object) -> str:
    """Return a value for a message, shortened if necessary."""
    if isinstance(value, int) and not -_BEYOND <= value < _BEYOND:
        return f"one of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _fits(annotation: Any, value: object) -> bool:
    """Return whether a value is of a type, including the members of a list."""
    inner = get_args(annotation)
    if get_origin(annotation) is Mapping:
        return isinstance(value, Mapping)
    if get_origin(annotation) is not tuple:
        # A plain type, or a union.
        if inner:
            return any(_fits(member, value) for member in inner)
        is_number = annotation is bool or not isinstance(value, bool)
        return is_number and isinstance(value, _ALSO.get(annotation, (annotation,)))
    if not isinstance(value, tuple | list):
        return False
    if Ellipsis in inner:
        return all(_fits(inner[0], item) for item in value)
    return len(value) == len(inner) and all(map(_fits, inner, value))


def words(annotation: Any) -> str:
    """Return a description of the values of a type."""
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    origin = get_origin(annotation)
    if origin is Literal:
        return f"one of {', '.join(filter(None, map(str, inner)))}"
    if origin in {tuple, list}:
        count = "" if Ellipsis in inner or origin is list else f"{len(inner)} "
        return f"a list of {count}{_PLURAL.get(inner[0], 'values')}"
    if origin in {dict, Mapping}:
        return _WORDS[dict]
    if inner:
        return " or ".join(dict.fromkeys(map(words, inner)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(member.value) for member in annotation)}"
    return _WORDS.get(annotation) or f"a {annotation.__name__}"


@cache
def _members(annotation: Any) -> tuple[type, ...]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return (annotation,)
    if (origin := get_origin(annotation)) in {tuple, Mapping}:
        return (origin,)
    return tuple(get_origin(member) or member for member in get_args(annotation))


def check_text(name: str, text: str, *, most: int | None = None) -> None:
    """Check that a text can be part of a line in a file, a table or a terminal.

    Parameters
    ----------
    name
        The setting or field that has it.
    text
        The text, from a user or a file.
    most
        Most characters allowed; None for no limit.

    Raises
    ------
    UsageError
        If it is longer, or has characters that cannot be printed: a line break would start another
        line in a ledger, and an escape would control the terminal.
    """
    if not text.isprintable():
        raise wrong(
            name,
            f"has characters that cannot be printed: {text[:80]!r}",
            hint="leave out line breaks, escapes and other control characters",
        )
    if most is not None and len(text) > most:
        raise wrong(name, f"has {len(text)} characters, at most {most} allowed")


def wrong(name: str, problem: str, *, hint: str = "") -> UsageError:
    """Return an error about the value of one setting or field."""
    return UsageError(f"`{name}` {problem}", hint=hint, field=name)


def at_least(name: str, value: float, least: float, *, hint: str = "") -> None:
    """Check that a number is not below ``least``."""
    if value < least:
        raise wrong(name, f"must be at least {least}, got {value}", hint=hint)


def at_most(name: str, value: float, most: float) -> None:
    """Check that a number is not above ``most``."""
    if value > most:
        raise wrong(name, f"must be at most {most:,}, got {value:,}")
