"""Metadata of a setting, given with the declaration, and the settings of a class."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from serverless_bench.base.units import format_size, parse_distance, parse_size
from serverless_bench.job.options import DECLARED, option_types
from serverless_bench.job.types import is_rule
from serverless_bench.job.workload import Workload, open_workload


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
    """Flag that precedes this one in the help; empty if it follows all others of its section."""
    applies: Callable[[Workload], bool] = lambda _: True
    """Whether jobs with a workload have the setting."""
    by_executor: bool = False
    """Whether executors refuse it unless they name it in ``ExecutorInfo.settings``."""


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
    options, declares = declared_options().items(), open_workload(workload)
    meant = {name: option for name, option in options if option.meaning.applies(declares)}
    return {**meant, **declared_for(workload)}
