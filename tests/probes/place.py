"""The target of a probe: a bucket of a running server, and a prefix of its own."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from tests.stores.servers import Server

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BODY = b"0123456789"


class Where(TypedDict):
    """Botocore's arguments for an object."""

    Bucket: str
    Key: str


@dataclass(frozen=True)
class Place:
    """Environment of a probe."""

    server: Server
    s3: "S3Client"
    prefix: str = field(default_factory=lambda: f"{uuid.uuid4().hex}/")

    def key(self, name: str) -> Where:
        return {"Bucket": self.server.bucket, "Key": self.prefix + name}

    def source(self, name: str) -> str:
        return f"{self.server.bucket}/{self.prefix}{name}"

    def put(self, name: str, body: bytes = BODY, **more: Any) -> str:
        """Store an object, and return its ETag."""
        return self.s3.put_object(**self.key(name), Body=body, **more)["ETag"]

    def bytes_of(self, name: str) -> bytes:
        return self.s3.get_object(**self.key(name))["Body"].read()

    def listed(self, **more: Any) -> Any:
        """Return the answer to a listing of the probe's objects, with keys without the prefix."""
        more = {"Prefix": "", **more}
        for name in {"Prefix", "StartAfter"} & more.keys():
            more[name] = self.prefix + more[name]
        answer = self.s3.list_objects_v2(Bucket=self.server.bucket, **more)
        found = [entry["Key"].removeprefix(self.prefix) for entry in answer.get("Contents", [])]
        return {**answer, "names": found}

    def names(self, **more: Any) -> list[str]:
        return list(self.listed(**more)["names"])


def open_s3(server: Server, keys: Mapping[str, str]) -> "S3Client":
    """Return a client that tries once, and adds no headers of its own."""
    config = Config(
        signature_version="s3v4",
        retries={"mode": "standard", "total_max_attempts": 1},
        s3={"addressing_style": "path"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        proxies={},
    )
    client: S3Client = _session().create_client(  # type: ignore[assignment]
        "s3",
        region_name="us-east-1",
        endpoint_url=server.endpoint_url,
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        config=config,
    )
    # Some servers close a connection after an error without a notice; the next request would be
    # lost.
    client.meta.events.register("before-send.s3", closing_connections)
    return client


def closing_connections(request: Any, **_: Any) -> None:
    request.headers["Connection"] = "close"


@cache
def _session() -> Session:
    """Read the descriptions of services once, which takes most of the time of making a client."""
    return Session()


def answer(call: Callable[[], Any]) -> str:
    """Return the status of the answer to a request, and the code of an error."""
    try:
        document = call()
    except ClientError as exc:
        return error(exc)
    return str(document["ResponseMetadata"]["HTTPStatusCode"])


def error(exc: ClientError) -> str:
    """Return the status and the code of an error; an answer without a body has no code."""
    status = str(exc.response["ResponseMetadata"]["HTTPStatusCode"])
    code = exc.response["Error"].get("Code", "")
    return status if code in {"", status} else f"{status} {code}"
