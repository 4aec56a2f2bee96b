"""The libraries under test: one file, one line here and one extra each, all of one name."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from serverless_bench import plugins
from serverless_bench.clients.base import Client
from serverless_bench.job.spec import Target, Transfer

CLIENTS: Final[Mapping[str, str]] = {
    "awscrt": "serverless_bench.clients.awscrt:AwsCrtClient",
    "boto3": "serverless_bench.clients.boto3:Boto3Client",
    "minio": "serverless_bench.clients.minio:MinioClient",
    "obstore": "serverless_bench.clients.obstore:ObstoreClient",
    "s3dlio": "serverless_bench.clients.s3dlio:S3dlioClient",
    "s3torchconnector": "serverless_bench.clients.s3torchconnector:S3TorchConnectorClient",
    "wire": "serverless_bench.clients.wire:WireClient",
}


def client_class(name: str) -> type[Client]:
    """Return the class called ``name``, importing only its library."""
    return cast("type[Client]", plugins.load("clients", CLIENTS, name))


def open_client(target: Target, transfer: Transfer) -> Client:
    """Return the client that ``target`` names."""
    factory = cast("Callable[[Target, Transfer], Client]", client_class(target.client))
    return factory(target, transfer)
