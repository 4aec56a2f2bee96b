"""What users write, checked against declared types, and those types in words."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from serverless_bench.errors import SbenchError, UsageError
from serverless_bench.job.types import WORDS, check_text, wrong

_WORDS: Final[Mapping[object, str]] = {
    **WORDS,
    Path: "text",
    dict: "a table",
}
_PLURAL: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole numbers",
    float: "numbers",
    dict[str, Any]: "tables",
}
_MAX_NAME: Final = 200
"""Characters; a file system takes 255 bytes."""
_types: Final = cache(get_type_hints)
_NAME: Final = re.compile(r"`(\w+)`")


def checked(kind: type, name: str, value: object) -> Any:  # noqa: ANN401 - of the field's type
    """Return a value for the field of a class, converted to the field's type.

    Raises
    ------
    UsageError
        If it cannot be.
    """
    return converted(_types(kind)[name], name, value)


def converted(annotation: Any, name: str, value: object) -> Any:  # noqa: ANN401 - of that type
    """Return a value as one of a type.

    Raises
    ------
    UsageError
        If it is none; ``name`` is what it is called.
    """
    if get_origin(annotation) is Mapping and isinstance(value, Mapping):
        # Its keys are the user's, and say best which value is wrong.
        (_, kind) = get_args(annotation)
        return {key: converted(kind, key, one) for key, one in value.items()}
    import msgspec  # noqa: PLC0415 - only what makes a job waits for it

    try:
        return msgspec.convert(value, annotation, dec_hook=lambda other, given: other(given))
    except (msgspec.ValidationError, TypeError):
        raise UsageError(
            f"`{name}` must be {words(annotation)}, got {value!r}", field=name
        ) from None


def words(annotation: Any) -> str:  # noqa: ANN401 - a type or a type form
    """Return what a value of a type is, in words."""
    inner = [one for one in get_args(annotation) if one is not type(None)]
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
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    return _WORDS[annotation]


def check_name(name: str) -> None:
    """Refuse what is no name of a directory.

    Raises
    ------
    UsageError
        If it leads elsewhere, or cannot be printed.
    """
    check_text("name", name, most=_MAX_NAME)
    if Path(name).name != name or name == "..":
        raise wrong("name", f"{name!r} is not a plain name", hint="`run_dir` takes a path")


@contextmanager
def located(place: str, spelling: Callable[[str], str] = str, *, hint: str = "") -> Iterator[None]:
    """Put a place in a file before what is wrong there.

    Parameters
    ----------
    place
        Begins the message.
    spelling
        How the file calls settings.
    hint
        For errors that have none.
    """
    try:
        yield
    except SbenchError as exc:
        exc.args = (f"{place}: {renamed(str(exc), spelling)}",)
        exc.hint = renamed(exc.hint, spelling) or hint
        raise


def renamed(text: str, spell: Callable[[str], str]) -> str:
    """Return a message with the names in backquotes as ``spell`` writes them."""
    return _NAME.sub(lambda found: spell(found[1]), text)
