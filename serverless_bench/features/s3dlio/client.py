"""s3dlio: a Rust library on AWS's SDK for Rust, designed for data sets of machine learning.

It takes all settings from environment variables, once per process, at its first request: a process
can have a single endpoint, region and set of options, and cannot be redirected. Importing it starts
threads, so it is imported when a client is opened, and no client may be opened before a fork.

By default it hashes every payload with SHA-256, also over http; ``payload_signing=unsigned``
disables that. Attempts are hidden: its retries are disabled, but every get of a full object is a
HEAD and then a GET, or from 32 MiB on parallel ranges (``split=no`` disables that), and it hides
the status. Full objects are kept in memory, and no progress is reported, except with
``writer=multipart``, which keeps parts.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Literal

from serverless_bench.base.errors import (
    AccessDenied,
    BadRequest,
    BadResponse,
    ConnectionLost,
    Corrupt,
    OperationError,
    PluginError,
    TimedOut,
    UsageError,
    WrongRegion,
)
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import AWS_HOST, ClientInfo, Exchange, Sink, Source
from serverless_bench.clients.environment import ca_bundle, certificate_error
from serverless_bench.clients.options import option
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.features.library_clients.bodies import InMemoryClient
from serverless_bench.features.library_clients.errors import translating

if find_spec("s3dlio") is None:
    raise ModuleNotFoundError("No module named 's3dlio'", name="s3dlio")

_ENDPOINT: Final = "AWS_ENDPOINT_URL"
_NEAREST: Final[Mapping[str, int]] = {
    "NotFound": 404,
    "PermanentRedirect": 301,
    "TemporaryRedirect": 307,
    "AuthorizationHeaderMalformed": 301,
}
"""Status for codes that ``s3_error`` cannot classify by name; other codes map to 400."""
_SIGNS: Final[Mapping[str, type[OperationError]]] = {
    "Missing AWS_ACCESS_KEY_ID": AccessDenied,
    "minimum throughput": TimedOut,
    "timed out": TimedOut,
    "timeout error": TimedOut,
    "hecksum mismatch": Corrupt,
    "dispatch failure": ConnectionLost,
    "streaming error": ConnectionLost,
    "error parsing XML": BadResponse,
}
"""Fragments of the library's error messages; the first match wins."""

_settings: tuple[int, Mapping[str, str]] | None = None
"""Id of this process, and the settings that it has passed to the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3dlioOptions:
    """The options of s3dlio, and the variables that it uses."""

    payload_signing: Literal["sha256", "unsigned"] = option(
        "sha256", "hash of the body in the signature, over http and https"
    )
    threads: int | None = option(None, "threads of its runtime (S3DLIO_RT_THREADS)", least=1)
    split: bool = option(
        default=True, about="read large objects in ranges (S3DLIO_ENABLE_RANGE_OPTIMIZATION)"
    )
    split_from_mb: int | None = option(
        None, "MiB from which on it does (S3DLIO_RANGE_THRESHOLD_MB)", least=1
    )
    range_mb: int | None = option(None, "MiB of such a range (S3DLIO_CHUNK_SIZE)", least=1)
    ranges: int | None = option(
        None, "concurrent ranges of one object (S3DLIO_RANGE_CONCURRENCY)", least=1
    )
    writer: Literal["put", "multipart"] = option(
        "put", "how objects are written: put_bytes, or MultipartUploadWriter"
    )
    part_mb: int = option(16, "MiB of a part of MultipartUploadWriter", least=5)
    parts: int = option(8, "concurrent parts of one object, of MultipartUploadWriter", least=1)
    max_attempts: int = option(1, "attempts of one request (S3DLIO_MAX_RETRY_ATTEMPTS)", least=1)


def error_of(text: str) -> OperationError:
    """Return the error for an error text of s3dlio, which provides no structured form."""
    short = text[:200]
    if status_text := re.search(r"\bHTTP (\d{3})\b", text):
        return s3_error(int(status_text[1]), "", short, {})
    if code_text := re.search(r"service error: (?:unhandled error \((\w+)\)|(\w+) \()", text):
        code = code_text[1] or code_text[2]
        error = s3_error(_NEAREST.get(code, 400), code, short, {})
        error.status = None
        return error
    if refused := certificate_error(text):
        return refused
    return next((error for sign, error in _SIGNS.items() if sign in text), BadRequest)(short)


_translated = partial(translating, (RuntimeError, OSError, ValueError), error_of)


class S3dlioClient(InMemoryClient[S3dlioOptions]):
    """Requests through the functions of ``s3dlio``.

    Raises
    ------
    UsageError
        If s3dlio does not have an option of the target, or does not support its addressing.
    PluginError
        If this process has opened a client for another target.
    """

    info: ClassVar[ClientInfo] = ClientInfo(
        attempts="hidden",
        progress="none",
        signing="SigV4, SHA-256 of the body unless payload_signing=unsigned",
        checksum="none",
        forkable=False,
        operations=frozenset({"put", "get", "range", "head", "list", "delete"}),
        options=S3dlioOptions,
        quirks=frozenset({"follows_redirects", "one_store", "own_attempts"}),
    )

    def _open(self) -> None:
        self._library = _start(self._variables())

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        """Raise an error: the first settings of the library are final for the process.

        Raises
        ------
        WrongRegion
            Always.
        """
        where = region or endpoint_url
        raise WrongRegion(
            f"s3dlio cannot be redirected ({where}): set --region and --endpoint-url",
            region=region,
            endpoint=endpoint_url,
        )

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write an object in one request, or with ``writer=multipart`` in parts."""
        if self._options.writer == "multipart" and source.size:
            self._put_parts(key, source, exchange)
        else:
            with self._in_memory(source, exchange) as body, _translated():
                self._library.put_bytes(self._uri(key), body)
            exchange.moved(source.size)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read into memory: the library returns the object only when it is complete."""
        with _translated():
            if length is None:
                response = self._library.get(self._uri(key))
            else:
                response = self._library.get_range(self._uri(key), offset, length)
        data = response.memoryview()
        exchange.moved(len(data))
        for position in range(0, len(data), self._transfer.block_size):
            sink.write_at(position, data[position : position + self._transfer.block_size])

    @_translated()
    def head(self, key: str, exchange: Exchange) -> int:
        return int(self._library.stat(self._uri(key))["size"])

    @_translated()
    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """List all keys below a directory, in as many requests as the library needs.

        The library treats a prefix as a directory and always lists from the first key: the rest of
        the request is applied to the response.
        """
        uris = self._library.list(self._uri(prefix[: prefix.rfind("/") + 1]), recursive=True)
        names = (uri.removeprefix(self._uri("")) for uri in uris)
        return sorted(name for name in names if name.startswith(prefix) and name > after), False

    @_translated()
    def delete(self, key: str, exchange: Exchange) -> None:
        """Delete an object; s3dlio sends a DeleteObjects request with one key."""
        self._library.delete(self._uri(key))

    @_translated()
    def _put_parts(self, key: str, source: Source, exchange: Exchange) -> None:
        step = self._options.part_mb * MIB
        writer = self._library.MultipartUploadWriter(
            self._bucket,
            key,
            part_size=step,
            max_in_flight=self._options.parts,
            abort_on_drop=True,
        )
        for offset in range(0, source.size, step):
            count = min(step, source.size - offset)
            # Filled directly in the memory of the library, which avoids a copy.
            source.readinto_at(offset, writer.reserve(count))
            writer.commit(count)
            exchange.moved(count)
        writer.close()

    def _uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    def _variables(self) -> dict[str, str]:
        """Return the environment variables that the library uses."""
        if self._virtual and AWS_HOST not in self._endpoint_url:
            raise UsageError(
                "s3dlio puts the bucket into the path at every endpoint but AWS's own",
                hint="--addressing path, or another client",
            )
        options = self._options
        variables = {
            # It derives AWS endpoints from the region; with an explicit one, it puts the bucket
            # into the path.
            _ENDPOINT: None if self._virtual else self._endpoint_url,
            "AWS_REGION": self._region,
            "AWS_CA_BUNDLE": ca_bundle(),
            "S3DLIO_UNSIGNED_PAYLOAD": int(options.payload_signing == "unsigned"),
            "S3DLIO_RT_THREADS": options.threads,
            "S3DLIO_ENABLE_RANGE_OPTIMIZATION": int(options.split),
            "S3DLIO_RANGE_THRESHOLD_MB": options.split_from_mb,
            "S3DLIO_CHUNK_SIZE": options.range_mb and options.range_mb * MIB,
            "S3DLIO_RANGE_CONCURRENCY": options.ranges,
            "S3DLIO_MAX_RETRY_ATTEMPTS": options.max_attempts,
            "S3DLIO_CONNECT_TIMEOUT_SECS": round(self._connect_s) or 1,
            "S3DLIO_OPERATION_TIMEOUT_SECS": round(self._transfer.timeout) or 1,
        }
        return {name: str(value) for name, value in variables.items() if value is not None}


def _start(variables: Mapping[str, str]) -> Any:
    global _settings  # noqa: PLW0603 - the settings of the library are global, too
    if _settings is None or _settings[0] != os.getpid():
        # Without the endpoint, because boto3 would read it, too, and send all requests there.
        os.environ.update({k: v for k, v in variables.items() if k != _ENDPOINT})
        import_module("s3dlio").configure_s3(endpoint_url=variables.get(_ENDPOINT))
        _settings = (os.getpid(), variables)
    if _settings[1] != variables:
        raise PluginError(
            "s3dlio has started in this process for another endpoint, or with other options",
            hint="it keeps its first settings: use a new process or function",
        )
    return import_module("s3dlio")
