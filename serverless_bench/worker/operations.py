"""Perform one operation of any kind through a client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from serverless_bench.errors import BadResponse
from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import (
    ArraySpec,
    OperationKind,
    OperationSpec,
    Stat,
    Target,
    Transfer,
)
from serverless_bench.worker.retry import Retrier
from serverless_bench.worker.transfer import Checks, get_object, put_object


@dataclass(slots=True)
class Known:
    """What an invocation knows besides its operations."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes by key, as far as they were asked for: the size cache of a pre-stat."""
    array: ArraySpec | None = None
    """What its arrays are like."""
    target: Target | None = None
    """Where libraries of arrays find them."""


Perform = Callable[[OperationSpec, Transfer, Retrier, Checks, Known], int]
"""Performs an operation and returns how many keys it concerned."""


def perform(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    """Do what the operation says, and return how many keys that concerned.

    Parameters
    ----------
    operation, transfer
        What to do, and how objects are moved.
    retrier
        Makes the requests.
    checks
        Takes what making and comparing bytes comes to.
    known
        Sizes that are known already; a head adds one.

    Raises
    ------
    OperationError
        If it failed.
    """
    return _PERFORM[operation.kind](operation, transfer, retrier, checks, known)


def prepare(operation: OperationSpec, transfer: Transfer, known: Known) -> None:
    """Make what an operation needs and what is not to be measured; before its clock starts."""
    if operation.kind in _ARRAYS and known.array is not None and known.target is not None:
        # Arrays bring NumPy, which nothing else here needs.
        from serverless_bench.worker.array_operation import prepare_array  # noqa: PLC0415

        prepare_array(operation, known.array, known.target, transfer)


def needs(kind: OperationKind) -> str:
    """Return what a client has to offer for an operation, of ``ALL_OPERATIONS``."""
    return "range" if kind is OperationKind.GET_RANGE else kind.value


def _put(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del known
    put_object(operation, transfer, retrier, checks)
    return 1


def _get(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    if transfer.stat is Stat.EACH:
        _head(operation, transfer, retrier, checks, known)
    get_object(operation, transfer, retrier, checks, said_bytes=known.sizes.get(operation.key))
    return 1


def _head(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del transfer, checks
    key = operation.key
    size = retrier.run("head", partial(retrier.client.head, key))
    known.sizes[key] = size
    declared = declared_size(key)
    if declared is not None and declared != size:
        raise BadResponse(f"the store says that {key} has {size} bytes, it has {declared}")
    return 1


def _list(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del transfer, checks, known
    keys, _ = retrier.run("list", partial(retrier.client.list_keys, operation.key, ""))
    return len(keys)


def _delete(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del transfer, checks, known
    retrier.run("delete", partial(retrier.client.delete, operation.key))
    return 1


def _delete_many(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del transfer, checks, known
    retrier.run("delete_many", partial(retrier.client.delete_many, operation.keys))
    return len(operation.keys)


def _copy(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    del transfer, checks, known
    (source,) = operation.keys
    retrier.run("copy", partial(retrier.client.copy, source, operation.key))
    return 1


def _array(
    operation: OperationSpec, transfer: Transfer, retrier: Retrier, checks: Checks, known: Known
) -> int:
    from serverless_bench.worker.array_operation import perform_array  # noqa: PLC0415 - as in prepare

    if known.array is None or known.target is None:
        raise ValueError("an operation on an array needs an array")
    perform_array(operation, known.array, known.target, transfer, retrier, checks)
    return 1


_ARRAYS: Final = frozenset(
    {OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY, OperationKind.READ_ARRAY}
)
_PERFORM: Final[Mapping[OperationKind, Perform]] = {
    OperationKind.PUT: _put,
    OperationKind.GET: _get,
    OperationKind.GET_RANGE: _get,
    OperationKind.HEAD: _head,
    OperationKind.LIST: _list,
    OperationKind.DELETE: _delete,
    OperationKind.DELETE_MANY: _delete_many,
    OperationKind.COPY: _copy,
    **dict.fromkeys(_ARRAYS, _array),
}
