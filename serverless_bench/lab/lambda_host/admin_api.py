"""What tests read and set while a host runs: ``/sbench/...``."""

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from serverless_bench.errors import UsageError
from serverless_bench.lab.lambda_host.faults import FaultRule, InvokeFault, InvokeFaultPlan
from serverless_bench.lab.lambda_host.host import LambdaHost
from serverless_bench.lab.lambda_host.responses import ApiError, operation, reply


class AdminApi:
    """Answers ``/sbench/status``, ``/sbench/faults`` and ``/sbench/release``.

    Parameters
    ----------
    host
        Which one.
    """

    def __init__(self, host: LambdaHost) -> None:
        self._host = host
        self.routes = [
            web.get("/sbench/status", self._status),
            operation("PUT", "/sbench/faults", 200, self._set_faults),
            operation("POST", "/sbench/release", 200, self._release),
        ]

    async def _status(self, request: web.Request) -> web.Response:
        """Say what happened so far; with ``?memory=1`` also what the environments use."""
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
        """Take a new plan; faults that it does not name are off."""
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
        """Deliver the events that are held."""
        return {"released": self._host.events.release()}


def _memory(pids: list[int]) -> dict[str, Any]:
    """Return the mean proportional and resident set of processes, in KiB."""
    pss = rss = read = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue  # it has ended
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
        pss, rss, read = pss + kib["Pss"], rss + kib["Rss"], read + 1
    each = max(read, 1)
    return {"environments": read, "pss_kib_each": pss / each, "rss_kib_each": rss / each}
