"""Conversion of user input to declared types."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from serverless_bench.base.errors import SbenchError, UsageError
from serverless_bench.job.types import check_text, words, wrong

Setting = str | int | float | bool | tuple[str, ...]
"""Possible values of a flag in a file."""

_MAX_NAME: Final = 200
"""Most characters of a name; a file system accepts 255 bytes."""
_types: Final = cache(get_type_hints)


def checked(kind: type, name: str, value: object) -> Any:
    """Return a value for the field of a class, converted to the field's type.

    Raises
    ------
    UsageError
        If it cannot be converted.
    """
    return converted(_types(kind)[name], name, value)


def converted(annotation: Any, name: str, value: object) -> Any:
    """Return a value converted to a type.

    Parameters
    ----------
    annotation
        The type.
    name
        Name of the value in messages.
    value
        The value.

    Raises
    ------
    UsageError
        If it cannot be converted.
    """
    if get_origin(annotation) is Mapping and isinstance(value, Mapping):
        # The keys come from the user, and identify the wrong value best.
        (_, kind) = get_args(annotation)
        return {key: converted(kind, key, item) for key, item in value.items()}
    import msgspec

    try:
        return msgspec.convert(value, annotation, dec_hook=lambda other, given: other(given))
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError):
        raise UsageError(
            f"`{name}` must be {words(annotation)}, got {value!r}", field=name
        ) from None


def check_name(name: str) -> None:
    """Check that a text can be the name of a directory.

    Raises
    ------
    UsageError
        If it is a path, or cannot be printed.
    """
    check_text("name", name, most=_MAX_NAME)
    if Path(name).name != name or name == "..":
        raise wrong("name", f"{name!r} is not a plain name", hint="use `run_dir` for a path")


@contextmanager
def located(place: str, spelling: Callable[[str], str] = str, *, hint: str = "") -> Iterator[None]:
    """Prefix errors in the block with their place in a file.

    Parameters
    ----------
    place
        Start of the message.
    spelling
        Returns the name of a setting as the file spells it.
    hint
        Hint for errors that have none.
    """
    try:
        yield
    except SbenchError as exc:
        exc.args = (f"{place}: {renamed(str(exc), spelling)}",)
        exc.hint = renamed(exc.hint, spelling) or hint
        raise


def renamed(text: str, spell: Callable[[str], str]) -> str:
    """Return a message with the names in backquotes replaced by ``spell`` of them."""
    return re.sub(r"`(\w+)`", lambda match: spell(match[1]), text)
