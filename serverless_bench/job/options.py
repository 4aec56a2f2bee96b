"""Settings of all jobs that an executor or a policy declares, as a class of loads does."""

from serverless_bench.job.types import check_types


class Options:
    """The settings of an executor or a policy; a subclass is a dataclass.

    The table of the features names it in the family ``settings``.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        check_types(self)
