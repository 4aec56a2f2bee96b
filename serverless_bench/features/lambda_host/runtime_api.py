"""The Runtime API, from which processes request events and to which they post responses.

A single listener serves all of them. Each has a separate loopback address (``127.1.x.y``), and
the address that it connects to identifies it. A path would not work: ``awslambdaric`` splits
``AWS_LAMBDA_RUNTIME_API`` at the colon when it reports that a handler cannot be imported.
"""

import asyncio
import socket
from typing import Final

from aiohttp import web

from serverless_bench.base.errors import PluginError
from serverless_bench.features.lambda_host.environment import (
    MAX_RESPONSE_BYTES,
    Environment,
    InvokeResponse,
    failed,
)
from serverless_bench.features.loopback.listener import OwnListener, from_a_page

_ROOT: Final = "/2018-06-01/runtime/"
_NET: Final = 127 << 24 | 1 << 16
_ADDRESSES: Final = 1 << 16
_KEEP_ALIVE_S: Final = 86_400.0
"""Idle time limit of connections: a process keeps its connection while it works."""
BACKLOG: Final = 4096
"""A thousand processes may connect at once."""


class RuntimeApi:
    """Server for all execution environments of the host."""

    def __init__(self) -> None:
        self.environments: dict[str, Environment] = {}
        self._next = 1
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Start listening.

        Raises
        ------
        PluginError
            If this is not Linux.
        """
        if not hasattr(socket, "SO_BINDTODEVICE"):
            raise PluginError(
                "the Lambda host runs functions on Linux only",
                hint="use --scripted, which responds to invocations without functions",
            )
        listener = socket.socket()
        # Accept connections to all of 127/8, but not from other machines.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        listener.bind(("0.0.0.0", 0))  # noqa: S104 - see above
        self.port = listener.getsockname()[1]
        self._server = web.Server(self._handle, keepalive_timeout=_KEEP_ALIVE_S, access_log=None)
        self._listener = await asyncio.get_running_loop().create_server(
            self._server, sock=OwnListener.from_socket(listener), backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Stop listening."""
        if self._listener is not None and self._server is not None:
            self._listener.close()
            await self._server.shutdown(0.1)

    def add(self, environment: Environment) -> str:
        """Return the address that identifies ``environment``, until its removal from the table."""
        for _ in range(_ADDRESSES):
            number = _NET + self._next
            self._next = self._next % (_ADDRESSES - 2) + 1
            address = socket.inet_ntoa(number.to_bytes(4))
            if address not in self.environments:
                self.environments[address] = environment
                return address
        raise OverflowError("every address of 127.1/16 is taken")

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        local_address = request.transport.get_extra_info("sockname") if request.transport else None
        environment = self.environments.get(local_address[0]) if local_address else None
        if environment is None or is_page(request):
            return web.json_response({}, status=410)
        match request.path.removeprefix(_ROOT).split("/"):
            case ["invocation", "next"]:
                return await _next(environment)
            case ["invocation", request_id, "response"]:
                response = InvokeResponse(body=await request.content.read())
                return _taken(environment, request_id, response)
            case ["invocation", request_id, "error"]:
                kind = request.headers.get("Lambda-Runtime-Function-Error-Type") or "Unhandled"
                response = InvokeResponse(body=await request.content.read(), kind=kind)
                return _taken(environment, request_id, response)
            case ["init", "error"]:
                environment.failure = await request.content.read()
                return web.json_response({"status": "OK"}, status=202)
            case _:
                return web.json_response(
                    {"errorType": "NotFound", "errorMessage": request.path}, status=404
                )


def is_page(request: web.BaseRequest) -> bool:
    """Return whether a request comes from a web page."""
    return from_a_page(request.headers.get("Host", ""), request.headers.get("Origin"))


async def _next(environment: Environment) -> web.Response:
    order = await environment.next_order()
    if order is None:
        return web.json_response({}, status=410)
    headers = {
        "Lambda-Runtime-Aws-Request-Id": order["request_id"],
        "Lambda-Runtime-Deadline-Ms": str(order["deadline_ms"]),
        "Lambda-Runtime-Invoked-Function-Arn": order["arn"],
        "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
    }
    if order["client_context"]:
        headers["Lambda-Runtime-Client-Context"] = order["client_context"]
    # awslambdaric's native client crashes without a Content-Type.
    return web.Response(body=order["payload"], headers=headers, content_type="application/json")


def _taken(environment: Environment, request_id: str, response: InvokeResponse) -> web.Response:
    if len(response.body) > MAX_RESPONSE_BYTES and not response.kind:
        text = f"exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
        environment.respond(
            request_id, failed("Function.ResponseSizeTooLarge", f"Response payload size {text}")
        )
        error = {"errorType": "RequestEntityTooLarge", "errorMessage": text.capitalize()}
        return web.json_response(error, status=413)
    if environment.respond(request_id, response):
        return web.json_response({"status": "OK"}, status=202)
    return web.json_response(
        {"errorType": "InvalidRequestID", "errorMessage": "Invalid request ID"}, status=400
    )
