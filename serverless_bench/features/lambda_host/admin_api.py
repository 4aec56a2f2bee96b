"""Calls for tests while a host runs, and environments for other implementations of Lambda.

LocalStack itself decides when it needs an environment and where each event goes; it only has
them created here. A client needs only HTTP::

    POST   /sbench/environments                  create an environment that requests an event
    POST   /sbench/environments/ID/invocations   the body is the event
    GET    /sbench/environments/ID/logs
    DELETE /sbench/environments/ID
"""

import asyncio
import base64
import json
import uuid
from pathlib import Path
from typing import Any

from aiohttp import web

from serverless_bench.base.errors import UsageError
from serverless_bench.base.process import linux_status
from serverless_bench.features.lambda_host.environment import InitError, InvokeRequest
from serverless_bench.features.lambda_host.functions import LambdaFunction
from serverless_bench.features.lambda_host.host import LambdaHost
from serverless_bench.features.lambda_host.pool import Pool
from serverless_bench.features.lambda_host.responses import ApiError, operation, outcome, reply
from serverless_bench.features.lambda_host.settings import (
    MAX_TIMEOUT_S,
    MIB_PER_CPU,
    FaultRule,
    InvokeFault,
    InvokeFaultPlan,
)


class AdminApi:
    """Handler of ``/sbench/...``; an environment created on request is a process.

    Parameters
    ----------
    host
        Host that determines the limits and variables of the environments.
    """

    def __init__(self, host: LambdaHost) -> None:
        self._host = host
        self._lent: dict[str, Pool] = {}
        environment = "/sbench/environments/{id}"
        self.routes = [
            web.get("/sbench/status", self._status),
            operation("PUT", "/sbench/faults", 200, self._set_faults),
            operation("POST", "/sbench/release", 200, self._release),
            web.post("/sbench/environments", self._make),
            web.post(f"{environment}/invocations", self._invoke),
            web.get(f"{environment}/logs", self._logs),
            web.delete(environment, self._end),
        ]

    async def _status(self, request: web.Request) -> web.Response:
        """Return the statistics so far; with ``?memory=1`` also the memory of the environments."""
        status = self._host.statistics()
        if request.query.get("memory"):
            pids = [
                environment.pid
                for installed in self._host.functions.values()
                for environment in installed.pool
            ]
            status["memory"] = await asyncio.to_thread(_memory, pids)
        return reply(200, status)

    def _set_faults(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        """Set a new plan; faults that it does not contain are off."""
        host = self._host
        try:
            rules = {
                InvokeFault(name): FaultRule.from_json(rule)
                for name, rule in body.items()
                if name not in {"seed", "late_s"}
            }
            host.plan = InvokeFaultPlan(int(body.get("seed", host.settings.seed)), rules)
            host.late_s = float(body.get("late_s", host.late_s))
        except (ValueError, TypeError, UsageError) as exc:
            raise ApiError(400, "InvalidParameterValueException", str(exc)) from exc
        return {"faults": sorted(rules)}

    def _release(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        """Deliver the events that are on hold."""
        return {"released": self._host.events.release()}

    async def _make(self, request: web.Request) -> web.Response:
        try:
            function = _function(json.loads(await request.read()))
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            raise ApiError(400, "InvalidParameterValueException", repr(exc)) from exc
        pool = Pool(function, self._host.shared)
        try:
            await pool.spawn()
        except InitError as exc:
            await pool.kill()
            return web.Response(status=502, body=exc.response.body, content_type="application/json")
        name = uuid.uuid4().hex
        self._lent[name] = pool
        return reply(201, {"id": name})

    async def _invoke(self, request: web.Request) -> web.Response:
        """Have an environment handle an event; a dead environment is replaced first."""
        lent = self._find(request)
        call = InvokeRequest(
            request_id=request.headers.get("X-Sbench-Request-Id") or str(uuid.uuid4()),
            payload=await request.content.read() or b"{}",
            client_context=base64.b64decode(
                request.headers.get("X-Amz-Client-Context", "")
            ).decode(),
        )
        try:
            timeout_s = float(request.headers.get("X-Sbench-Timeout-S", MAX_TIMEOUT_S))
        except ValueError as exc:
            raise ApiError(400, "InvalidParameterValueException", str(exc)) from exc
        async with lent.turn:
            return outcome(call, await lent.run(call, timeout_s), log=True)

    async def _logs(self, request: web.Request) -> web.Response:
        """Return the complete output of the function."""
        text = b"".join(path.read_bytes() for path in self._find(request).logs if path.exists())
        return web.Response(body=text, content_type="text/plain")

    async def _end(self, request: web.Request) -> web.Response:
        lent = self._find(request)
        del self._lent[request.match_info["id"]]
        await lent.kill()
        return reply(204, None)

    async def stop(self) -> None:
        """End all environments."""
        while self._lent:
            await self._lent.popitem()[1].kill()

    def _find(self, request: web.Request) -> Pool:
        name = request.match_info["id"]
        if name not in self._lent:
            raise ApiError(404, "ResourceNotFoundException", f"no environment {name}")
        return self._lent[name]


def _memory(pids: list[int]) -> dict[str, Any]:
    """Return the mean proportional and resident set of processes, in KiB."""
    # Those that have ended are empty.
    sizes = [kib for pid in pids if (kib := linux_status(pid, "smaps_rollup"))]
    divisor = max(len(sizes), 1)
    return {
        "environments": len(sizes),
        "pss_kib_each": sum(kib["Pss"] for kib in sizes) / divisor,
        "rss_kib_each": sum(kib["Rss"] for kib in sizes) / divisor,
    }


def _function(body: dict[str, object]) -> LambdaFunction:
    environment, layers = body.get("environment") or {}, body.get("layers") or []
    if not isinstance(environment, dict) or not isinstance(layers, list):
        raise TypeError("environment is an object, layers are a list")
    code = Path(str(body["code"]))
    if not code.is_dir():
        raise ValueError(f"no directory {code}")
    return LambdaFunction(
        name=str(body["function"]),
        arn=str(body.get("arn") or ""),
        handler=str(body["handler"]),
        code=code,
        layers=tuple(Path(str(layer)) for layer in layers),
        environment={str(k): str(v) for k, v in environment.items()},
        foreign=True,
        memory_mib=int(str(body.get("memory_mib") or MIB_PER_CPU)),
    )
