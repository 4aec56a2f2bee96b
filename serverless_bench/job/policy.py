"""Policies: what features change in the functions of a job that has their setting.

A policy has the name of its setting; without the setting none of its code is loaded. Its driver's
side is in ``driver.policy``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    from serverless_bench.job.operations import OperationKind
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.job.workload import Workload
    from serverless_bench.worker.changes import OperationChanges
    from serverless_bench.worker.retry import Patience
    from serverless_bench.worker.runner import InvocationRunner


class Policy:
    """The hooks of a policy; by default none of them does anything."""

    __slots__ = ()

    leaves_notes = False
    """Whether functions and driver leave notes for each other in the store."""

    def in_invocation(self, job: "JobSpec", index: int) -> object:
        """Return the value of its setting for an invocation, which is plain, or a policy."""
        return self

    def second_requests(self, invocation: "InvocationSpec") -> "Mapping[OperationKind, Patience]":
        """Return the times after which reads are requested again, by kind of operation."""
        return {}

    def extra_threads(self, threads: int) -> int:
        """Return the number of threads in addition to those of the load."""
        return 0

    def variants(self, invocation: "InvocationSpec") -> Iterator["InvocationSpec"]:
        """Yield further invocations for the same function."""
        yield from ()

    def note_keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of notes that functions and driver may leave for each other."""
        yield from ()

    def begin(self, runner: "InvocationRunner") -> tuple[Mapping[str, int], int | None]:
        """Do what precedes the measurement of a function.

        Returns
        -------
        tuple
            Fields of the function's record; and the instant, in nanoseconds since the epoch by
            the driver's clock, from which schedules count, if it is common to all functions.
        """
        return {}, None

    def in_function(self, runner: "InvocationRunner") -> "OperationChanges | None":
        """Return what changes the operations of a function; None for nothing."""
        return None


POLICIES: Final = Registry[Any]("policies", {}, kind="policy")
"""A policy for each setting that has one, or the type of the setting's value if that is one."""


def policies_of(work: "Work") -> list[Policy]:
    """Return the policies of a job, or of an invocation."""
    return [*named_policies(work).values()]


def named_policies(work: "Work") -> dict[str, Policy]:
    """Return the policies of a job, or of an invocation, by name."""
    values = {name: work.options[name] for name in POLICIES if name in work.options}
    return {
        name: value if isinstance(value, Policy) else POLICIES.load(name)
        for name, value in values.items()
    }


def variants(invocation: "InvocationSpec") -> Iterator["InvocationSpec"]:
    """Yield an invocation, and further ones for the same function."""
    yield invocation
    for policy in policies_of(invocation):
        yield from policy.variants(invocation)


def keys_of(workload: "Workload", invocation: "InvocationSpec") -> Iterable[str]:
    """Return all keys that the invocation may create, each once."""
    _, *others = own = [*variants(invocation)]
    if not others:
        return workload.keys(invocation)
    return dict.fromkeys(key for each in own for key in workload.keys(each))
