"""The Invoke API (AWS Lambda API reference, Invoke)."""

import base64
import json
import socket
import struct
import uuid
from dataclasses import replace
from typing import Final

from aiohttp import web

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.features.lambda_host.counters import RATE
from serverless_bench.features.lambda_host.environment import InvokeRequest
from serverless_bench.features.lambda_host.host import LambdaHost, QueuedEvent
from serverless_bench.features.lambda_host.responses import ApiError, outcome, too_many
from serverless_bench.features.lambda_host.settings import InvokeFault

_TOO_LARGE: Final = {
    "Event": (
        1 << 20,
        "{} byte payload is too large for the Event invocation type (limit {} bytes)",
    ),
    "RequestResponse": (
        6 << 20,
        "Request must be smaller than {1} bytes for the InvokeFunction operation",
    ),
}
"""Maximum payload in bytes by type of invocation, and the message for larger payloads (AWS Lambda
developer guide, "Lambda quotas", invocation payload).
"""


class InvokeApi:
    """Handler of Invoke requests.

    Parameters
    ----------
    host
        Host of the functions.
    """

    def __init__(self, host: LambdaHost) -> None:
        self._host = host
        self.routes = [web.post("/2015-03-31/functions/{name}/invocations", self._counted)]

    async def _counted(self, request: web.Request) -> web.StreamResponse:
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
        installed = host.find(request.match_info["name"], request.query.get("Qualifier", ""))
        name, delivery = installed.function.name, None
        call = InvokeRequest(
            request_id=str(uuid.uuid4()),
            payload=_payload(body, kind),
            client_context=_context(request.headers.get("X-Amz-Client-Context", "")),
        )
        headers = {"x-amzn-RequestId": call.request_id}
        if kind == "DryRun":
            return web.Response(status=204, headers=headers)
        if not host.request_rate.take(monotonic_ns()):
            raise too_many(RATE)
        faults = host.plan.decide(call.payload)
        if InvokeFault.THROTTLE in faults:
            raise too_many(host.concurrency.reason(name))
        if InvokeFault.KILL in faults:
            host.counters.killed += 1
            call = replace(call, fatal=True)
        if kind == "Event":
            host.counters.events += 1
            host.counters.functions[name] += 1
            self._enqueue(QueuedEvent(name=name, call=call), faults)
        else:
            now_ns = monotonic_ns()
            if refused := host.concurrency.refusal(name, now_ns):
                raise too_many(refused)
            host.concurrency.enter(name, now_ns)
            delivery = host.shared.begin(host.deliver(name, call))
        host.counters.count_accepted(wall_ns())
        if InvokeFault.CUT in faults:
            return self._cut(request)
        if delivery is None:
            return web.Response(status=202, headers=headers)
        return outcome(call, await delivery, log=request.headers.get("X-Amz-Log-Type") == "Tail")

    def _enqueue(self, event: QueuedEvent, faults: frozenset[InvokeFault]) -> None:
        host = self._host
        if InvokeFault.DROP in faults:
            host.counters.dropped += 1
            return
        if InvokeFault.DUPLICATE in faults:
            host.counters.duplicated += 1
            host.events.put(event)
        if InvokeFault.LATE in faults:
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
            # A close then sends RST instead of FIN.
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        return web.Response(status=202)


def _payload(body: bytes, kind: str) -> bytes:
    most, text = _TOO_LARGE.get(kind, _TOO_LARGE["RequestResponse"])
    if len(body) > most:
        raise ApiError(413, "RequestTooLargeException", text.format(len(body), most))
    try:
        json.loads(body or b"{}")
    except ValueError as exc:
        raise ApiError(
            400, "InvalidRequestContentException", f"Could not parse request body into json: {exc}"
        ) from exc
    return body or b"{}"


def _context(header: str) -> str:
    try:
        return base64.b64decode(header, validate=True).decode()
    except ValueError as exc:
        raise ApiError(
            400, "InvalidRequestContentException", "Client context must be base64-encoded JSON"
        ) from exc
