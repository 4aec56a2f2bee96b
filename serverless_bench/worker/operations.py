"""Perform one operation of any kind through a client."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from serverless_bench.errors import BadResponse
from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.transfer import Stat
from serverless_bench.worker.operation_context import DONE, OperationContext, OperationResult
from serverless_bench.worker.transfer import get_object, put_object


def perform(context: OperationContext) -> OperationResult:
    """Do what the context's operation says.

    Raises
    ------
    OperationError
        If it failed.
    """
    return _PERFORM.get(context.spec.kind, _special)(context)


def needs(kind: OperationKind) -> str:
    """Return what a client has to offer for an operation, of ``ALL_OPERATIONS``."""
    return "range" if kind is OperationKind.GET_RANGE else kind.value


def _get(context: OperationContext) -> OperationResult:
    if context.transfer.stat is Stat.EACH:
        _head(context)
    return get_object(context)


def _head(context: OperationContext) -> OperationResult:
    key, retrier = context.spec.key, context.retrier
    size = retrier.run("head", partial(retrier.client.head, key))
    context.invocation.sizes[key] = size
    declared = declared_size(key)
    if declared is not None and declared != size:
        raise BadResponse(f"the store reports {size} bytes for {key}, its key declares {declared}")
    return OperationResult(size=size)


def _list(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    call = partial(retrier.client.list_keys, context.spec.key, context.list_after)
    keys, more = retrier.run("list", call)
    return OperationResult(count=len(keys), keys=keys, more=more)


def _delete(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    retrier.run("delete", partial(retrier.client.delete, context.spec.key))
    return DONE


def _delete_many(context: OperationContext) -> OperationResult:
    retrier, keys = context.retrier, context.spec.keys
    retrier.run("delete_many", partial(retrier.client.delete_many, keys))
    return OperationResult(count=len(keys))


def _copy(context: OperationContext) -> OperationResult:
    retrier = context.retrier
    (source,) = context.spec.keys
    retrier.run("copy", partial(retrier.client.copy, source, context.spec.key))
    return DONE


def _special(context: OperationContext) -> OperationResult:
    performer = context.invocation.performer
    if performer is None:
        raise ValueError(f"the workload of this job performs no {context.spec.kind}")
    return performer.perform(context)


_PERFORM: Final[Mapping[OperationKind, Callable[[OperationContext], OperationResult]]] = {
    OperationKind.PUT: put_object,
    OperationKind.GET: _get,
    OperationKind.GET_RANGE: _get,
    OperationKind.HEAD: _head,
    OperationKind.LIST: _list,
    OperationKind.DELETE: _delete,
    OperationKind.DELETE_MANY: _delete_many,
    OperationKind.COPY: _copy,
}
