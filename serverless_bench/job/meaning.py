"""Metadata of a setting, given with the declaration, its text, and the settings of a class.

A function that ``read``s a text takes the name of the setting and its value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from serverless_bench.base.errors import UsageError, suggestion
from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import format_size, parse_distance, parse_size
from serverless_bench.job.defaults import DEFAULT_MIX
from serverless_bench.job.operations import MIXED
from serverless_bench.job.policy import POLICIES, Policy
from serverless_bench.job.types import check_types, described, is_rule, wrong
from serverless_bench.job.workload import WORKLOADS, Trait, Workload, open_workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import Work

GivenPairs = str | Sequence[str] | Mapping[str, str | int | float | bool]
"""Several ``NAME=VALUE``, or a table."""

_MAX_DIGITS: Final = 18
"""Most digits of a length of an array, so that it fits into 64 bits."""


def canonical_sizes(sizes: str) -> str:
    """Return a distribution of sizes in the form that functions get."""
    from serverless_bench.job.sizes import parse_sizes

    return str(parse_sizes(sizes))


def read_pairs(name: str, given: GivenPairs) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a setting with several ``NAME=VALUE``, in the order given."""
    if isinstance(given, Mapping):
        # TOML and Python have booleans, but options of the libraries are texts.
        return tuple(
            (key, str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in given.items()
        )
    pairs: dict[str, str] = {}
    for text in (given,) if isinstance(given, str) else given:
        key, _, value = text.partition("=")
        if not key or not value:
            missing = "value" if key else "name"
            raise wrong(
                name,
                f"{text!r} is not NAME=VALUE: it has no {missing}",
                hint=f"write `{name}` NAME=VALUE",
            )
        if key in pairs:
            raise wrong(name, f"gives {key} twice", hint="give it once")
        pairs[key] = value
    return tuple(pairs.items())


def read_mix(name: str, mix: str | Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return the weights by kind of operation."""
    kinds = {kind.value for kind in MIXED}
    weights: dict[str, float] = {}
    text = mix if isinstance(mix, str) else ",".join(f"{n}={w}" for n, w in mix.items())
    for piece in text.split(","):
        kind, _, weight = (part.strip() for part in piece.partition("="))
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        problems = {
            f"{piece!r} is not KIND=WEIGHT": not 0 <= value < float("inf"),
            f"{kind!r} is no kind of operation": kind not in kinds,
            f"{kind!r} has two weights": kind in weights,
        }
        if problem := next((text for text, is_wrong in problems.items() if is_wrong), None):
            raise wrong(
                name,
                f"{text!r}: {problem}",
                hint=f"write it as in {DEFAULT_MIX}; kinds: {', '.join(sorted(kinds))}, each once",
            )
        weights[kind] = value
    if not sum(weights.values()):
        raise wrong(name, f"{text!r} has no weight above 0")
    return tuple((kind, weight) for kind, weight in weights.items() if weight)


def read_numbers(name: str, numbers: str | tuple[int, ...]) -> tuple[int, ...]:
    """Return whole numbers: the lengths of a shape, or the levels of a series."""
    if not isinstance(numbers, str):
        return numbers
    parts = [part.strip() for part in numbers.split(",")]
    if not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        raise wrong(name, f"{numbers!r} are not whole numbers", hint="write them as in 1,10,100")
    return tuple(map(int, parts))


def read_names(_: str, names: str | Sequence[str]) -> tuple[str, ...]:
    """Return several names, of which a user may give a single one."""
    return (names,) if isinstance(names, str) else tuple(names)


def absolute(path: str) -> str:
    """Return the absolute path of a directory."""
    return str(Path(path).absolute())


@dataclass(frozen=True, slots=True)
class Meaning:
    """Description of a setting, besides name, type and default."""

    what: str
    """Help text."""
    _: KW_ONLY
    own: bool = False
    """Whether only workloads that declare the setting have it."""
    parse: Callable[[str], Any] | None = None
    """Converts a text to the value in a specification, for a setting that may be a text."""
    read: Callable[[str, Any], Any] | None = None
    """The same for any value, which follows the setting's name."""
    section: str = ""
    """Section of the help for a flag without a specific place; Workload for an ``own`` flag, and
    otherwise Functions, if empty."""
    otherwise: Callable[[Workload], object] = lambda _: None
    """Effective value for a workload if the setting is None; None if there is none."""
    path: Literal["file", "folder"] | None = None
    """Kind of path, if it is a path."""
    metavar: str | None = None
    """Name of the value in the help."""
    is_argument: bool = False
    """Whether the command has an argument in place of a flag."""
    after: str = ""
    """Flags that precede this one in the help; empty if it follows all others of its section."""
    trait: Trait | None = None
    """Property of the workloads whose jobs have the setting."""
    without: type | None = None
    """Ability of the workloads whose jobs lack it."""
    decides: bool = False
    """Whether it decides where a job runs, or which store it uses."""
    names_objects: bool = False
    """Whether it names objects, in place of those of an earlier run."""
    by_executor: bool = False
    """Whether executors refuse it unless they name it in ``ExecutorInfo.settings``."""


def always(value: object) -> Callable[[Workload], object]:
    """Return what gives every workload the same value, for ``Meaning.otherwise``."""
    return lambda _: value


DECLARED: Final = Registry[type]("settings", {})
"""Classes with settings: ``Options`` of executors and policies, and by the name of a workload those
that it alone has, in place of the fields of its loads."""


class Options:
    """The settings of an executor or a policy: a subclass is a dataclass with a field for each.

    The table of the features names it in the family ``settings``.
    """

    __slots__ = ()

    @classmethod
    def from_work(cls, work: "Work") -> Self:
        """Return the values of a job, or of an invocation, and defaults for the others."""
        own = {field.name for field in fields(cast("Any", cls))}
        given = {name: value for name, value in work.options.items() if value is not None}
        return cls(**{name: given[name] for name in own & given.keys()})

    def __post_init__(self) -> None:
        check_types(self)

    def places(self) -> Iterator[str]:
        """Yield the resources that a job with these values uses, for a message."""
        yield from ()


class Declared(NamedTuple):
    """A setting as a class declares it."""

    kind: Any
    """Type of the values that a user may give."""
    default: Any
    """Default as a user types it."""
    meaning: Meaning


@cache
def declared_in(kind: Any) -> Mapping[str, Declared]:
    """Return the settings among the fields of a class, by name, in order of declaration."""
    hints = get_type_hints(kind, include_extras=True)
    settings = {}
    for field in fields(kind):
        annotation, *metadata = get_args(hints[field.name]) or (None,)
        meaning = next((item for item in metadata if isinstance(item, Meaning)), None)
        if meaning is not None:
            choices = next(filter(is_rule, metadata), None)
            settings[field.name] = _declared(annotation, choices, field.default, meaning)
    return settings


def _declared(annotation: Any, rule: Any, default: object, meaning: Meaning) -> Declared:
    """Return a setting whose values may be texts with a unit, or a choice of texts."""
    is_list = get_origin(annotation) is tuple
    members = (annotation,) if is_list else get_args(annotation) or (annotation,)
    if get_origin(rule) is Literal:
        annotation = rule | None if NoneType in members else rule
    if (meaning.parse or is_list) and str not in members:
        annotation = str | annotation if is_list or int in members else annotation | str
    if meaning.parse in (parse_size, parse_distance) and isinstance(default, int):
        default = format_size(default).replace(" ", "")
    return Declared(annotation, default, meaning)


@cache
def declared_for(workload: str) -> Mapping[str, Declared]:
    """Return the settings that a workload alone has, by name.

    Raises
    ------
    PluginError
        If no package provides the workload.
    """
    load_type = open_workload(workload).load_type
    kind = DECLARED.load(workload) if workload in DECLARED else load_type
    return {
        name: declared._replace(meaning=replace(declared.meaning, own=True))
        for name, declared in declared_in(kind).items()
    }


@cache
def declared_options() -> Mapping[str, Declared]:
    """Return the settings that executors and policies declare, by name."""
    return {
        name: declared for kind in option_types() for name, declared in declared_in(kind).items()
    }


@cache
def declared_beside(workload: str) -> Mapping[str, Declared]:
    """Return the settings of a workload's jobs that a feature declares, by name."""
    declares = open_workload(workload)
    options = {
        name: option
        for name, option in declared_options().items()
        if (option.meaning.trait is None or option.meaning.trait in declares.traits)
        and not (option.meaning.without and isinstance(declares, option.meaning.without))
    }
    return {**options, **declared_for(workload)}


@cache
def option_types() -> tuple[Any, ...]:
    """Return the classes with the settings of executors and policies."""
    return tuple(DECLARED.load(name) for name in DECLARED if name not in WORKLOADS)


def used_options(work: "Work") -> list[Options]:
    """Return the options of which a job has a value, checked."""
    used = work.options.keys()
    types = option_types() if used else ()
    return [kind.from_work(work) for kind in types if not used.isdisjoint(_defaults(kind))]


def checked_options(work: "Work") -> dict[str, Any]:
    """Return the values that differ from their defaults; those that nothing declares remain.

    Raises
    ------
    UsageError
        If a value is invalid.
    """
    values = {name: value for name, value in work.options.items() if value is not None}
    for options in used_options(work):
        for name, default in _defaults(type(options)).items():
            values.pop(name, None)
            if (value := getattr(options, name)) != default:
                values[name] = value
    return values


def check_known(options: Mapping[str, Any]) -> None:
    """Check that something declares each option.

    Raises
    ------
    UsageError
        If nothing does.
    """
    if not options:
        # Most jobs have none, and need no module that declares some.
        return
    known = {*POLICIES, *(name for kind in option_types() for name in _defaults(kind))}
    for name in options.keys() - known:
        raise UsageError(
            f"`{name}` is no option of a job", hint=suggestion(name, known), field=name
        )


def read_options(_: object, table: object, where: str) -> dict[str, Any]:
    """Return the options in a table; a policy is loaded only if the table has it."""
    if not isinstance(table, Mapping):
        raise TypeError(f"`{where}` must be a table")
    return {name: _read(name, value, where) for name, value in table.items()}


def _read(name: str, value: object, where: str) -> Any:
    if value is not None and name in POLICIES:
        kind = POLICIES.load(name)
        if not isinstance(kind, Policy):
            return described(kind, value, f"{where}.{name}")
    return tuple(value) if isinstance(value, list) else value


def _defaults(kind: Any) -> Mapping[str, Any]:
    return {field.name: field.default for field in fields(kind)}
