"""What users write, checked against declared types."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from serverless_bench.errors import SbenchError, UsageError
from serverless_bench.job.types import check_text, words, wrong

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
