"""The options of a client library: ``--client-option NAME=VALUE``, validated before a run starts.

A client defines its options in a frozen dataclass whose fields are created with ``option``::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class MyOptions:
        threads: int = option(4, "threads of the library's own pool")
        signing: Literal["sha256", "unsigned"] = option("sha256", "hash of the body, or none")

    class MyClient:
        info: ClassVar[ClientInfo] = ClientInfo(options=MyOptions, ...)

        def __init__(self, target: Target, transfer: Transfer) -> None:
            self._options = parse(MyOptions, target)

A field is an ``int``, ``float``, ``bool`` or ``str``, a ``Literal`` of strings, or an optional type
of these, where None selects the default of the library.
"""

from collections.abc import Mapping
from dataclasses import Field, field, fields
from types import UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from serverless_bench.base.errors import UsageError
from serverless_bench.clients import CLIENTS
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
        Value if the user does not set the option; None for the default of the library.
    about
        Description of the option, in a line.
    least
        Smallest valid number.
    s3_only
        Whether it applies to S3 requests only, and not to stores of another protocol.
    """
    return field(default=default, metadata={"about": about, "least": least, "s3_only": s3_only})


def documented(options: type) -> Mapping[str, str]:
    """Return the description of every option with its values and default, by name."""
    return {
        field.name: f"{field.metadata['about']} ({_values(field.type)}; {_default(field.default)})"
        for field in fields(options)
    }


def parse(options: type[K], target: Target, *, kind: str = "client") -> K:
    """Return the options as set in ``target.client_option``.

    ``kind`` names the owner of the options in messages: a client, or a library of arrays.

    Raises
    ------
    UsageError
        If a name is unknown or a value is invalid.
    """
    fields_by_name = {field.name: field for field in fields(cast("Any", options))}
    for name, _ in target.client_option:
        if name not in fields_by_name:
            listed = ", ".join(sorted(fields_by_name))
            raise UsageError(
                f"{kind} {target.client!r} has no option {name!r}",
                hint=f"its options are {listed}" if listed else "it has no options",
            )
        if fields_by_name[name].metadata["s3_only"] and target.protocol is not StoreProtocol.S3:
            raise UsageError(
                f"{kind} {target.client!r} has no option {name!r} for {target.protocol}://",
                hint=f"leave it out: {fields_by_name[name].metadata['about']}, for S3 only",
            )
    return options(
        **{
            name: _value(f"`{kind}_option` {name}={text}", text, fields_by_name[name])
            for name, text in target.client_option
        }
    )


def check(target: Target) -> None:
    """Check the client options of a target.

    Raises
    ------
    UsageError
        If the client does not have an option, or a value is invalid; lists the options.
    PluginError
        If the client is unknown or its library is not installed.
    """
    parse(CLIENTS.load(target.client).info.options, target)


def _value(setting: str, text: str, field: Field[Any]) -> object:
    least = field.metadata["least"]
    try:
        return _read(text, field.type, least)
    except (KeyError, ValueError):
        bound = "" if least is None else f", at least {least:g}"
        raise UsageError(
            f"{setting} is not possible", hint=f"{field.name} is {_values(field.type)}{bound}"
        ) from None


def _read(text: str, kind: Any, least: float | None) -> object:
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


def _values(kind: Any) -> str:
    inner = _without_none(kind)
    if get_origin(inner) is Literal:
        return " or ".join(get_args(inner))
    names = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}
    return names[inner]


def _without_none(kind: Any) -> Any:
    if not isinstance(kind, UnionType):
        return kind
    return next(part for part in get_args(kind) if part is not type(None))


def _default(value: object) -> str:
    if value is None:
        return "by default the library's own"
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"default {value}"
