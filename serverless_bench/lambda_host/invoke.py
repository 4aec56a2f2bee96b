"""The Invoke API (AWS Lambda API reference, Invoke)."""

import base64
import binascii
import json
import socket
import struct
import uuid
from dataclasses import replace

from aiohttp import web

from serverless_bench.clock import monotonic_ns, wall_ns
from serverless_bench.lambda_host.concurrency import RATE
from serverless_bench.lambda_host.environment import InvokeRequest, InvokeResponse
from serverless_bench.lambda_host.events import Event
from serverless_bench.lambda_host.faults import InvokeFault
from serverless_bench.lambda_host.functions import LATEST
from serverless_bench.lambda_host.host import Host
from serverless_bench.lambda_host.responses import (
    MAX_ASYNC_BYTES,
    MAX_SYNC_BYTES,
    ApiError,
    too_large,
    too_many,
)


class InvokeApi:
    """Answers Invoke requests.

    Parameters
    ----------
    host
        Whose functions are meant.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return its routes."""
        return [web.post("/2015-03-31/functions/{name}/invocations", self.invoke)]

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        counters = self._host.counters
        counters.invokes += 1
        try:
            return await self._invoke(request)
        except ApiError as exc:
            counters.throttled += exc.status == 429
            counters.rejected += exc.status != 429
            return exc.response()

    async def _invoke(self, request: web.Request) -> web.StreamResponse:
        host = self._host
        kind = request.headers.get("X-Amz-Invocation-Type", "RequestResponse")
        body = await request.content.read()
        name = host.find(request.match_info["name"], request.query.get("Qualifier", ""))
        call = InvokeRequest(
            request_id=str(uuid.uuid4()),
            payload=_payload(body, event=kind == "Event"),
            client_context=_context(request.headers.get("X-Amz-Client-Context", "")),
        )
        if kind == "DryRun":
            return web.Response(status=204, headers=_headers(call))
        if not host.request_rate.take(monotonic_ns()):
            raise too_many(RATE)
        faults = host.plan.decide(call.payload)
        if InvokeFault.THROTTLE in faults:
            raise too_many(host.concurrency.reason(name.function.name))
        if InvokeFault.KILL in faults:
            host.counters.killed += 1
            call = replace(call, fatal=True)
        if kind == "Event":
            host.counters.count_accepted(wall_ns())
            self._enqueue(name.function.name, call, faults)
            if InvokeFault.CUT in faults:
                return self._cut(request)
            return web.Response(status=202, headers=_headers(call))
        return await self._wait(request, name.function.name, call, faults)

    async def _wait(
        self, request: web.Request, name: str, call: InvokeRequest, faults: frozenset[InvokeFault]
    ) -> web.StreamResponse:
        host = self._host
        if refused := host.concurrency.refusal(name):
            raise too_many(refused)
        host.counters.count_accepted(wall_ns())
        host.concurrency.enter(name)
        if InvokeFault.CUT in faults:
            host.shared.begin(host.deliver(name, call))
            return self._cut(request)
        response = await host.deliver(name, call)
        tail = request.headers.get("X-Amz-Log-Type") == "Tail"
        return _web_response(call, response, tail=tail)

    def _enqueue(self, name: str, call: InvokeRequest, faults: frozenset[InvokeFault]) -> None:
        host = self._host
        event = Event(name=name, call=call)
        if InvokeFault.DROP in faults:
            host.counters.dropped += 1
            return
        late = InvokeFault.LATE in faults
        if InvokeFault.DUPLICATE in faults:
            host.counters.duplicated += 1
            host.events.put(event)
        if late:
            host.counters.late += 1
            host.events.hold(event, host.late_s)
        else:
            host.events.put(event)

    def _cut(self, request: web.Request) -> web.StreamResponse:
        """Reset the connection."""
        self._host.counters.cut += 1
        transport = request.transport
        if transport is not None:
            connection = transport.get_extra_info("socket")
            # Closing then sends RST and no FIN.
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        return web.Response(status=202)


def _payload(body: bytes, *, event: bool) -> bytes:
    if len(body) > (MAX_ASYNC_BYTES if event else MAX_SYNC_BYTES):
        raise too_large(len(body), event=event)
    try:
        json.loads(body or b"{}")
    except ValueError as exc:
        text = f"Could not parse request body into json: {exc}"
        raise ApiError(400, "InvalidRequestContentException", text) from exc
    return body or b"{}"


def _context(header: str) -> str:
    try:
        return base64.b64decode(header, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as exc:
        text = "Client context must be base64-encoded JSON"
        raise ApiError(400, "InvalidRequestContentException", text) from exc


def _headers(call: InvokeRequest) -> dict[str, str]:
    return {"x-amzn-RequestId": call.request_id}


def _web_response(call: InvokeRequest, response: InvokeResponse, *, tail: bool) -> web.Response:
    headers = _headers(call) | {"X-Amz-Executed-Version": LATEST}
    if response.error:
        headers["X-Amz-Function-Error"] = response.error
    if tail:
        headers["X-Amz-Log-Result"] = response.tail()
    return web.Response(body=response.body, headers=headers, content_type="application/json")
