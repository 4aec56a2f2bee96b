"""Content of a store, by the official library of its protocol: botocore, azure-storage-blob."""

import os
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from botocore.config import Config
from botocore.session import Session

from serverless_bench.features.azure.client import account_url
from serverless_bench.job.target import StoreProtocol, Target

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AZURE: Final = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY")


class _S3:
    """Access through botocore."""

    def __init__(self, target: Target) -> None:
        self._bucket = target.bucket
        session = Session()
        self._client: S3Client = session.create_client(  # type: ignore[assignment]
            "s3",
            region_name=target.region or session.get_config_variable("region") or "us-east-1",
            endpoint_url=target.endpoint_url or None,
            config=Config(
                s3={"addressing_style": target.addressing.value},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    def put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()

    def keys(self, prefix: str) -> list[str]:
        listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def open_uploads(self, prefix: str) -> list[str]:
        listed = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Uploads", [])]


class _AzureReference:
    """Access through azure-storage-blob, with the key of an account."""

    def __init__(self, target: Target) -> None:
        from azure.storage.blob import ContainerClient

        account, key = (os.environ[name] for name in _AZURE)
        self._container = ContainerClient(
            account_url(target, target.endpoint_url),
            target.bucket,
            credential={"account_name": account, "account_key": key},
        )

    def put(self, key: str, data: bytes) -> None:
        self._container.upload_blob(key, data, overwrite=True)

    def get(self, key: str) -> bytes:
        return self._container.download_blob(key).readall()

    def keys(self, prefix: str) -> list[str]:
        return list(self._container.list_blob_names(name_starts_with=prefix))

    def open_uploads(self, prefix: str) -> list[str]:
        blobs = self._container.list_blobs(name_starts_with=prefix, include=["uncommittedblobs"])
        return sorted({blob.name for blob in blobs} - {*self.keys(prefix)})


Reference = _S3 | _AzureReference
"""A bucket as seen by the official library of its protocol."""


def open_reference(target: Target) -> Reference:
    """Return the reference of a target, shared by all tests because it is slow to create."""
    credentials = tuple(
        map(os.environ.get, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", *_AZURE))
    )
    return _open_reference(replace(target, client="", prefix="", client_option=()), credentials)


@cache
def _open_reference(target: Target, credentials: tuple[str | None, ...]) -> Reference:
    del credentials
    if target.protocol is StoreProtocol.AZ:
        return _AzureReference(target)
    if target.protocol is StoreProtocol.GS:
        # This store must also support S3's protocol, as the loopback store does.
        target = replace(target, region="us-east-1")
    return _S3(target)
