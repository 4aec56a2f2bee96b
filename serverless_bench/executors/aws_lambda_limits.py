"""How many functions of a job AWS Lambda lets run at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botocore import exceptions as boto

from serverless_bench.aws.account import unqualified
from serverless_bench.errors import ExecutorError
from serverless_bench.executors.base import RunProgress

_QUOTA_UNKNOWN: Final = 1000
"""The quota of an account that never asked for more; new accounts have less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimits:
    """What bounds the functions of a job that are alive at once."""

    asked: int
    quota: int | None
    """What the account has left for functions without a reserve; None if it does not say."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """By function, for those that have a reserve."""
    functions: int = 1
    """How many share the load, in turns."""

    @property
    def effective(self) -> int:
        """How many may be alive at once; below 1 if none."""
        shares = [number * self.functions for number in self.reserved.values()]
        if unreserved := self.functions - len(self.reserved):
            quota = _QUOTA_UNKNOWN if self.quota is None else self.quota
            shares.append(quota * self.functions // unreserved)
        return min(self.asked, *shares)


def read_limits(
    client: Any,  # noqa: ANN401 - botocore's
    functions: Sequence[str],
    asked: int,
    progress: RunProgress,
) -> ConcurrencyLimits:
    """Return what bounds the functions of a job; what cannot be read is noted.

    Raises
    ------
    ExecutorError
        If none may run.
    """
    limits = ConcurrencyLimits(
        asked=asked,
        quota=_quota(client, progress),
        reserved=_reserved(client, functions, progress),
        functions=len(functions),
    )
    if limits.effective < 1:
        raise ExecutorError("the quota lets no function run", hint="raise the reserved concurrency")
    return limits


def _quota(client: Any, progress: RunProgress) -> int | None:  # noqa: ANN401
    try:
        return int(client.get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"])
    except (boto.BotoCoreError, boto.ClientError, KeyError) as exc:
        progress.notes.append(f"the concurrency quota is unknown ({exc}); 1,000 assumed")
        return None


def _reserved(
    client: Any,  # noqa: ANN401
    functions: Sequence[str],
    progress: RunProgress,
) -> dict[str, int]:
    found = {}
    for name in functions:
        try:
            # A reserve is the function's, not a version's: Lambda refuses to be asked for one.
            answer = client.get_function_concurrency(FunctionName=unqualified(name))
        except (boto.BotoCoreError, boto.ClientError) as exc:
            progress.notes.append(f"what is reserved for {name} is unknown ({exc})")
        else:
            if (reserved := answer.get("ReservedConcurrentExecutions")) is not None:
                found[name] = int(reserved)
    return found
