"""Settings of all jobs that an executor or a policy declares, as a class of loads does."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from serverless_bench.base.errors import UsageError, suggestion
from serverless_bench.base.plugins import Registry
from serverless_bench.job.policy import POLICIES, Policy
from serverless_bench.job.types import check_types, described
from serverless_bench.job.workload import WORKLOADS

if TYPE_CHECKING:
    from serverless_bench.job.spec import Work

DECLARED: Final = Registry[type]("settings", {})
"""Classes with settings: ``Options`` of executors and policies, and by the name of a workload those
that it alone has, in place of the fields of its loads."""


class Options:
    """The settings of an executor or a policy: a subclass is a dataclass with a field for each.

    The table of the features names it in the family ``settings``.
    """

    __slots__ = ()

    @classmethod
    def of(cls, work: "Work") -> Self:
        """Return the values of a job, or of an invocation, and defaults for the others."""
        own = _defaults(cls)
        return cls(**{name: value for name, value in work.options.items() if name in own})

    def __post_init__(self) -> None:
        check_types(self)

    def places(self) -> Iterator[str]:
        """Yield the resources that a job with these values uses, for a message."""
        yield from ()


@cache
def option_types() -> tuple[Any, ...]:
    """Return the classes with the settings of executors and policies."""
    return tuple(DECLARED.load(name) for name in DECLARED if name not in WORKLOADS)


def used_options(work: "Work") -> list[Options]:
    """Return the options of which a job has a value, checked."""
    used = work.options.keys()
    types = option_types() if used else ()
    return [kind.of(work) for kind in types if not used.isdisjoint(_defaults(kind))]


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
    known = {*POLICIES, *(name for kind in option_types() if options for name in _defaults(kind))}
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
    if isinstance(value, Mapping) and name in POLICIES:
        kind = POLICIES.load(name)
        if not isinstance(kind, Policy):
            return described(kind, value, f"{where}.{name}")
    return tuple(value) if isinstance(value, list) else value


def _defaults(kind: Any) -> Mapping[str, Any]:
    return {field.name: field.default for field in fields(kind)}
