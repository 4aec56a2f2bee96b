"""Settings of all jobs that an executor or a policy declares, as a class of loads does."""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Self, cast

from serverless_bench.base.plugins import Registry
from serverless_bench.job.types import check_types

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
        own = {field.name for field in fields(cast("Any", cls))}
        return cls(**{name: value for name, value in work.options.items() if name in own})

    def __post_init__(self) -> None:
        check_types(self)

    def places(self) -> Iterator[str]:
        """Yield the resources that a job with these values uses, for a message."""
        yield from ()
