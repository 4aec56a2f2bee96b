"""The libraries under test: a module, an entry here and an extra each, all of the same name."""

from typing import TYPE_CHECKING, Final

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    # The help output needs only the names.
    from serverless_bench.clients.base import Client
    from serverless_bench.clients.base import ClientClass as ClientClass
    from serverless_bench.job.target import Target, Transfer

CLIENTS: Final = Registry["ClientClass"](
    "clients",
    {
        "boto3": "serverless_bench.clients.boto3:Boto3Client",
        "wire": "serverless_bench.clients.wire:WireClient",
    },
)


def open_client(target: "Target", transfer: "Transfer") -> "Client":
    """Return the client named by ``target``."""
    return CLIENTS.load(target.client)(target, transfer)
