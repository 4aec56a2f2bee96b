"""Each library called directly, as its authors recommend for the size of the object.

Bodies exist before, and read bytes are not looked at, so that the cost is that of the library.
`docs/clients.md` has the sources of the recommendations.
"""

import io
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.subjects.draft import BUCKET, REGION, Run, in_threads
from serverless_bench.base.units import MIB
from serverless_bench.clients import open_client
from serverless_bench.job.target import Target, Transfer
from serverless_bench.payload.keystream import Keystream

Move = Callable[[str, str], None]
"""Moves one object: put or get, and its key."""
_BOTO3_SPLITS: Final = 8 * MIB
"""``TransferConfig.multipart_threshold``."""


def bare(client: str, url: str, size: int, threads: int) -> Run:
    """Return a function that moves objects of one size with a library alone."""
    body = bytearray(size)
    Keystream("bare").readinto_at(0, memoryview(body))
    move = _MADE[client](url, bytes(body))
    return in_threads(lambda _, kind, key: move(kind, key), threads)


def _boto3(url: str, body: bytes) -> Move:
    """Move large objects as ``upload_fileobj`` does: parts of 8 MiB, ten threads."""
    import boto3

    client = boto3.client("s3", endpoint_url=url, region_name=REGION)

    def move(kind: str, key: str) -> None:
        if len(body) >= _BOTO3_SPLITS:
            if kind == "put":
                client.upload_fileobj(io.BytesIO(body), BUCKET, key)
                return
            with Path(os.devnull).open("wb") as nowhere:
                client.download_fileobj(BUCKET, key, nowhere)
        elif kind == "put":
            client.put_object(Bucket=BUCKET, Key=key, Body=body)
        else:
            got = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            assert len(got) == len(body)

    return move


def _awscrt(url: str, body: bytes) -> Move:
    """Leave parts, connections and threads to the runtime."""
    from awscrt import auth, http, s3
    from awscrt import io as crt

    parts = urlsplit(url)
    loops = crt.EventLoopGroup()
    bootstrap = crt.ClientBootstrap(loops, crt.DefaultHostResolver(loops))
    provider = auth.AwsCredentialsProvider.new_default_chain(bootstrap)
    secure = parts.scheme == "https"
    trust = crt.TlsContextOptions()
    trust.override_default_trust_store_from_path(ca_filepath=os.environ["AWS_CA_BUNDLE"])
    tls = crt.ClientTlsContext(trust).new_connection_options() if secure else None
    client = s3.S3Client(
        bootstrap=bootstrap,
        region=REGION,
        tls_mode=s3.S3RequestTlsMode.ENABLED if secure else s3.S3RequestTlsMode.DISABLED,
        tls_connection_options=tls,
        signing_config=s3.create_default_s3_signing_config(
            region=REGION, credential_provider=provider
        ),
    )

    def move(kind: str, key: str) -> None:
        headers = http.HttpHeaders([("host", parts.netloc)])
        request = http.HttpRequest(kind.upper(), f"/{BUCKET}/{key}", headers)
        got = 0

        def on_body(*, chunk: bytes, **_: object) -> None:
            nonlocal got
            got += len(chunk)

        if kind == "put":
            headers.add("content-length", str(len(body)))
            request.body_stream = io.BytesIO(body)
            what = s3.S3RequestType.PUT_OBJECT
        else:
            what = s3.S3RequestType.GET_OBJECT
        client.make_request(request=request, type=what, on_body=on_body).finished_future.result()
        assert got == (len(body) if kind == "get" else 0)

    return move


def _minio(url: str, body: bytes) -> Move:
    """Let ``put_object`` choose its parts: 5 MiB, three threads."""
    from minio import Minio

    parts = urlsplit(url)
    client = Minio(
        parts.netloc,
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        secure=parts.scheme == "https",
        region=REGION,
    )

    def move(kind: str, key: str) -> None:
        if kind == "put":
            client.put_object(BUCKET, key, io.BytesIO(body), len(body))
            return
        response = client.get_object(BUCKET, key)
        try:
            assert sum(map(len, response.stream(MIB))) == len(body)
        finally:
            response.close()
            response.release_conn()

    return move


def _obstore(url: str, body: bytes) -> Move:
    """Let ``put`` split above 5 MiB, and stream large objects."""
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        BUCKET,
        config={"region": REGION, "endpoint": url},
        client_options={
            "allow_http": True,
            "root_certificate": Path(os.environ["AWS_CA_BUNDLE"]).read_bytes(),
        },
    )

    def move(kind: str, key: str) -> None:
        if kind == "put":
            obstore.put(store, key, body)
            return
        response = obstore.get(store, key)
        chunks = response if len(body) > MIB else (response.bytes(),)
        assert sum(map(len, chunks)) == len(body)

    return move


def _s3dlio(url: str, body: bytes) -> Move:
    """``put_bytes`` and ``get``, which reads in ranges from 32 MiB on."""
    library: Any = import_module("s3dlio")
    library.configure_s3(endpoint_url=url)

    def move(kind: str, key: str) -> None:
        uri = f"s3://{BUCKET}/{key}"
        if kind == "put":
            library.put_bytes(uri, body)
        else:
            assert len(memoryview(library.get(uri))) == len(body)

    return move


def _s3torchconnector(url: str, body: bytes) -> Move:
    """With the defaults of ``S3ClientConfig``: parts of 8 MiB, 10 Gbit/s."""
    from s3torchconnectorclient._mountpoint_s3_client import (
        MountpointS3Client,
    )

    client = MountpointS3Client(
        region=REGION,
        endpoint=url,
        force_path_style=True,
        throughput_target_gbps=10.0,
        part_size=8 * MIB,
    )

    def move(kind: str, key: str) -> None:
        if kind == "put":
            writer = client.put_object(BUCKET, key)
            writer.write(body)
            writer.close()
        else:
            assert sum(map(len, client.get_object(BUCKET, key))) == len(body)

    return move


class _Body:
    """A body in memory, and a buffer that is never read."""

    def __init__(self, body: bytes) -> None:
        self.size = len(body)
        self._body = body

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        buffer[:] = self._body[offset : offset + len(buffer)]

    def write_at(self, offset: int, data: memoryview) -> None:
        pass


class _Nobody:
    """Ignores all events of an attempt."""

    def connected(self, remote: str, *, reused: bool) -> None: ...
    def moved(self, count: int) -> None: ...
    def sending(self, waiting: Callable[[], int]) -> None: ...
    def sent(self) -> None: ...
    def acknowledged(self, at_ns: int) -> None: ...
    def answered(self, status: int, headers: Mapping[str, str]) -> None: ...
    def first_byte(self) -> None: ...


def _wire(url: str, body: bytes) -> Move:
    """Sbench's own client, without the meter."""
    target = Target(client="wire", bucket=BUCKET, endpoint_url=url, region=REGION)
    client, ends, nobody = open_client(target, Transfer()), _Body(body), _Nobody()

    def move(kind: str, key: str) -> None:
        (client.put if kind == "put" else client.get)(key, ends, nobody)

    return move


_MADE: Final[Mapping[str, Callable[[str, bytes], Move]]] = {
    "awscrt": _awscrt,
    "boto3": _boto3,
    "minio": _minio,
    "obstore": _obstore,
    "s3dlio": _s3dlio,
    "s3torchconnector": _s3torchconnector,
    "wire": _wire,
}
