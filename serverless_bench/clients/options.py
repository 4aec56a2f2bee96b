"""The options of a client library: ``--client-option NAME=VALUE``, checked before anything starts.

A client keeps its options in a frozen dataclass whose fields are made with ``option``::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class MyOptions:
        threads: int = option(4, "threads of the library's own pool")
        signing: Literal["sha256", "unsigned"] = option("sha256", "what stands for the body's hash")

    class MyClient:
        info: ClassVar[ClientInfo] = ClientInfo(options=MyOptions, ...)

        def __init__(self, target: Target, transfer: Transfer) -> None:
            self._options = parse(MyOptions, target)

A field is an ``int``, ``float``, ``bool`` or ``str``, a ``Literal`` of strings, or one of
these or None, where None stands for the library's own default.
"""

from collections.abc import Mapping
from dataclasses import Field, field, fields
from types import UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from serverless_bench.clients import CLIENTS
from serverless_bench.errors import UsageError
from serverless_bench.job.target import StoreProtocol, Target

K = TypeVar("K")
T = TypeVar("T")

_BOOL: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "on", "true", "yes"), True),
    **dict.fromkeys(("0", "off", "false", "no"), False),
}


def option(default: T, about: str, *, least: float | None = None, s3_only: bool = False) -> T:
    """Return a dataclass field that is an option.

    Parameters
    ----------
    default
        Its value when the user does not set it; None for the library's own.
    about
        What it does, in one line.
    least
        Smallest number that makes sense.
    s3_only
        Whether it is about S3's requests, and means nothing to a store of another protocol.
    """
    metadata = {"about": about, "least": least, "s3_only": s3_only}
    return field(default=default, metadata=metadata)


def documented(options: type) -> Mapping[str, str]:
    """Return the name of every option, and what it means, its values and its default."""
    return {
        one.name: f"{one.metadata['about']} ({_values(one.type)}; {_default(one.default)})"
        for one in fields(options)
    }


def parse(options: type[K], target: Target, *, kind: str = "client") -> K:
    """Return the options as ``target.options`` sets them.

    ``kind`` is what words call the owner of the options: a client, or a library of arrays.

    Raises
    ------
    UsageError
        If a name is unknown or a value is none of its kind.
    """
    known = {one.name: one for one in fields(cast("Any", options))}
    for name, _ in target.client_option:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise UsageError(
                f"{kind} {target.client!r} has no option {name!r}",
                hint=f"it has {listed}" if listed else "it has none",
            )
        if known[name].metadata["s3_only"] and target.protocol is not StoreProtocol.S3:
            raise UsageError(
                f"{kind} {target.client!r} has no option {name!r} for {target.protocol}://",
                hint=f"leave it out: {known[name].metadata['about']}, for S3 only",
            )
    return options(
        **{
            name: _value(f"`{kind}_option` {name}={text}", text, known[name])
            for name, text in target.client_option
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
    parse(CLIENTS.load(target.client).info.options, target)


def _value(setting: str, text: str, one: Field[Any]) -> object:
    least = one.metadata["least"]
    try:
        return _read(text, one.type, least)
    except (KeyError, ValueError):
        bound = "" if least is None else f", at least {least:g}"
        raise UsageError(
            f"{setting} is not possible", hint=f"{one.name} is {_values(one.type)}{bound}"
        ) from None


def _read(text: str, kind: Any, least: float | None) -> object:  # noqa: ANN401 - a type or a form
    inner = _without_none(kind)
    if inner is not kind and text.lower() == "none":
        return None
    if get_origin(inner) is Literal:
        return dict(zip(get_args(inner), get_args(inner), strict=True))[text]
    if inner is bool:
        return _BOOL[text.lower()]
    value = inner(text)
    if least is not None and value < least:
        raise ValueError
    return value


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
