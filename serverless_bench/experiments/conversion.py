"""From what a file says to values of declared types; errors name the place, in TOML's words."""

import re
from typing import Any, Final

import msgspec

from serverless_bench.errors import UsageError
from serverless_bench.experiments.definition import Size
from serverless_bench.units import parse_size

HINT: Final = "docs/experiments/README.md has the keys"
_TOML: Final = {
    "array": "list",
    "bool": "true or false",
    "float": "number",
    "int": "whole number",
    "object": "table",
    "str": "text",
}
"""What a file's author calls types."""


def converted(value: object, kind: Any, where: str) -> Any:  # noqa: ANN401 - of that kind
    """Return a value as one of a type.

    Raises
    ------
    UsageError
        If it is none; ``where`` begins the message.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_decoded)
    except msgspec.ValidationError as exc:
        what, _, path = str(exc).partition(" - at `$")
        steps = re.findall(r"\w+", path.removeprefix(".scales"))
        place = ", ".join([where, *steps])
        place = re.sub(r", (\d+)\b", lambda number: f" {int(number[1]) + 1}", place)
        if what.startswith("Expected"):
            what = re.sub(r"`(.*?)`", lambda kinds: _in_toml(kinds[1]), what)
        what = what.removeprefix("Object ").replace("`", "'")
        raise UsageError(f"{place}: {what[0].lower()}{what[1:]}", hint=HINT) from exc


def _in_toml(kinds: str) -> str:
    words = [_TOML.get(kind, kind) for kind in kinds.split(" | ") if kind != "null"]
    if "number" in words and "whole number" in words:
        words.remove("whole number")
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _decoded(kind: type, value: object) -> object:
    if kind is not Size or not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"expected bytes, as in '8MiB', got {value!r}")
    try:
        return Size(parse_size(str(value)))
    except UsageError as exc:
        raise ValueError(f"{exc}; {exc.hint}") from exc
