"""The knobs of a client library: ``--client-option NAME=VALUE``, checked before anything starts.

A client keeps its knobs in a frozen dataclass whose fields are made with ``option``::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Knobs:
        threads: int = option(4, "threads of the library's own pool")
        signing: Literal["sha256", "unsigned"] = option("sha256", "what stands for the body's hash")

    class MyClient:
        knobs: ClassVar[type] = Knobs
        options: ClassVar[Mapping[str, str]] = documented(Knobs)

        def __init__(self, target: Target, transfer: Transfer) -> None:
            self._knobs = parse(Knobs, target)

A field is an ``int``, ``float``, ``bool`` or ``str``, a ``Literal`` of strings, or one of
these or None, where None stands for the library's own default.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from serverless_bench.clients import client_class
from serverless_bench.errors import UsageError
from serverless_bench.job.spec import Target
from serverless_bench.rundir.record import Shown

K = TypeVar("K")
T = TypeVar("T")

_IMPOSSIBLE: Final = object()
_BOOL: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "on", "true", "yes"), True),
    **dict.fromkeys(("0", "off", "false", "no"), False),
}


def option(default: T, about: str, *, least: float | None = None) -> T:
    """Return a dataclass field that is a knob.

    Parameters
    ----------
    default
        Its value when the user does not set it; None for the library's own.
    about
        What it does, in one line.
    least
        Smallest number that makes sense.
    """
    return field(default=default, metadata={"about": about, "least": least})


def documented(knobs: type) -> Mapping[str, str]:
    """Return what ``Client.options`` holds: every knob's name, meaning, values and default."""
    return MappingProxyType(
        {
            knob.name: f"{knob.metadata['about']} ({_values(knob.type)}; {_default(knob.default)})"
            for knob in fields(knobs)
        }
    )


def parse(knobs: type[K], target: Target) -> K:
    """Return the knobs as ``target.options`` sets them.

    Raises
    ------
    UsageError
        If a name is unknown or a value is none of its kind.
    """
    known = {knob.name: knob for knob in fields(cast("Any", knobs))}
    _check_names(target, dict.fromkeys(known, ""))
    return knobs(
        **{
            name: _value(name, text, known[name].type, known[name].metadata["least"])
            for name, text in target.options
        }
    )


def check(target: Target) -> None:
    """Refuse options that the target's client does not have, or values that it cannot take.

    Raises
    ------
    UsageError
        If so; it names the options that there are.
    PluginError
        If the client is unknown or lacks its library.
    """
    client = client_class(target.client)
    _check_names(target, client.options)
    # A client from elsewhere may read its options in its own way.
    if knobs := getattr(client, "knobs", None):
        parse(knobs, target)


def attempts(target: Target) -> str:
    """Return ``Client.attempts`` with the options as they are: some let a library split.

    A client class may name such options in ``hiding``.
    """
    client = client_class(target.client)
    hiding: frozenset[str] = getattr(client, "hiding", frozenset())
    given = {name for name, text in target.options if text.lower() != "none"}
    return "hidden" if hiding & given else client.attempts


def shows(target: Target) -> frozenset[Shown]:
    """Return ``Client.shows`` with the options as they are.

    A library that splits a put hides when its last byte was sent. A client from elsewhere that
    does not say what it shows is taken at its word for nothing.
    """
    shown: frozenset[Shown] = getattr(client_class(target.client), "shows", frozenset())
    return shown - {Shown.LAST_BYTE_SENT} if attempts(target) == "hidden" else shown


def _check_names(target: Target, known: Mapping[str, str]) -> None:
    for name, _ in target.options:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise UsageError(
                f"client {target.client!r} has no option {name!r}",
                hint=f"it has {listed}" if listed else "it has none",
            )


def _value(name: str, text: str, kind: Any, least: float | None) -> object:  # noqa: ANN401
    try:
        value = _read(text, kind)
    except (KeyError, ValueError):
        value = _IMPOSSIBLE
    if least is not None and isinstance(value, int | float) and value < least:
        value = _IMPOSSIBLE
    if value is _IMPOSSIBLE:
        bound = "" if least is None else f", at least {least:g}"
        raise UsageError(
            f"`client_option` {name}={text} is not possible",
            hint=f"{name} is {_values(kind)}{bound}",
        )
    return value


def _read(text: str, kind: Any) -> object:  # noqa: ANN401 - a type or a type form
    inner = _without_none(kind)
    if inner is not kind and text.lower() == "none":
        return None
    if get_origin(inner) is Literal:
        return dict(zip(get_args(inner), get_args(inner), strict=True))[text]
    if inner is bool:
        return _BOOL[text.lower()]
    return inner(text)


def _values(kind: Any) -> str:  # noqa: ANN401 - a type or a type form
    inner = _without_none(kind)
    if get_origin(inner) is Literal:
        return " or ".join(get_args(inner))
    names = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}
    return names[inner]


def _without_none(kind: Any) -> Any:  # noqa: ANN401 - a type or a type form
    if not isinstance(kind, UnionType):
        return kind
    return next(part for part in get_args(kind) if part is not type(None))


def _default(value: object) -> str:
    if value is None:
        return "by default the library's own"
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"default {value}"
