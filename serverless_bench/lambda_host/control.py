"""The part of the control API that Lithops and ``sbench doctor`` use.

(AWS Lambda API reference; the dates in the paths are versions of the API.)
"""

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import web

from serverless_bench.lambda_host.events import EventRules
from serverless_bench.lambda_host.functions import LATEST, RUNTIME, LambdaFunction
from serverless_bench.lambda_host.host import Host, InstalledFunction
from serverless_bench.lambda_host.layers import Layers, sha256, stamp, unzip
from serverless_bench.lambda_host.responses import ApiError, json_body, reply
from serverless_bench.lambda_host.settings import ACCOUNT, MAX_TIMEOUT_S, MEMORY_MIB, arn

_FUNCTIONS: Final = "/2015-03-31/functions"
_IDENTITY: Final = """\
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>arn:aws:iam::{account}:user/sbench</Arn>
<UserId>AIDASBENCHLAMBDAHOST</UserId><Account>{account}</Account></GetCallerIdentityResult>
<ResponseMetadata><RequestId>{request}</RequestId></ResponseMetadata>
</GetCallerIdentityResponse>"""
_DESCRIBED: Final = frozenset(
    ["Architectures", "Description", "EphemeralStorage", "PackageType", "Role", "Runtime"]
)


class ControlApi:
    """Creates, describes and deletes functions.

    Parameters
    ----------
    host
        Which one.
    layers
        What they may have.
    directory
        Code goes here.
    """

    def __init__(self, host: Host, layers: Layers, directory: Path) -> None:
        self._host = host
        self._layers = layers
        self._directory = directory

    def routes(self) -> list[web.RouteDef]:
        """Return its routes."""
        one = f"{_FUNCTIONS}/{{name}}"
        return [
            web.post("/", self.identity),
            web.post(_FUNCTIONS, self.create),
            # botocore's paths lost their last slash in 2025.
            web.get(_FUNCTIONS, self.all),
            web.get(f"{_FUNCTIONS}/", self.all),
            web.get(one, self.get),
            web.delete(one, self.delete),
            web.get(f"{one}/configuration", self.configuration),
            web.put(f"{one}/configuration", self.configure),
            web.put(f"{one}/code", self.update),
            web.get("/2019-09-30/functions/{name}/concurrency", self.concurrency),
            web.put("/2017-10-31/functions/{name}/concurrency", self.reserve),
            web.delete("/2017-10-31/functions/{name}/concurrency", self.reserve),
            web.get("/2019-09-25/functions/{name}/event-invoke-config", self.events),
            web.put("/2019-09-25/functions/{name}/event-invoke-config", self.set_events),
            web.get("/2016-08-19/account-settings", self.account),
            web.get("/2016-08-19/account-settings/", self.account),
            web.get("/2017-03-31/tags/{name}", self.tags),
        ]

    # Functions.

    async def create(self, request: web.Request) -> web.Response:
        """CreateFunction."""
        body = await json_body(request)
        name = body.get("FunctionName", "").rpartition(":")[2]
        if name in self._host.functions:
            raise ApiError(409, "ResourceConflictException", f"Function already exist: {name}")
        directory = self._directory / "functions" / f"{name}-{uuid.uuid4().hex[:8]}"
        data = unzip(body.get("Code", {}), directory)
        function = LambdaFunction(
            name=name,
            arn=arn(self._host.settings.region, name),
            handler=body["Handler"],
            code=directory,
            shared=self._host.settings.share_packages,
            preload=self._host.settings.preload,
        )
        installed = self._host.install(self._configured(function, body))
        self._describe(installed, body, data)
        return reply(201, self._description(installed))

    async def all(self, request: web.Request) -> web.Response:
        """ListFunctions."""
        described = [self._description(installed) for installed in self._host.functions.values()]
        return reply(200, {"Functions": described})

    async def get(self, request: web.Request) -> web.Response:
        """GetFunction."""
        installed = self._find(request)
        described = {
            "Configuration": self._description(installed),
            "Code": {"RepositoryType": "S3", "Location": ""},
            "Tags": installed.created.get("Tags", {}),
        }
        if installed.function.name in self._host.concurrency.reserved:
            described["Concurrency"] = self._reserved(installed.function.name)
        return reply(200, described)

    async def configuration(self, request: web.Request) -> web.Response:
        """GetFunctionConfiguration."""
        return reply(200, self._description(self._find(request)))

    async def configure(self, request: web.Request) -> web.Response:
        """UpdateFunctionConfiguration."""
        body = await json_body(request)
        installed = self._find(request)
        installed = self._host.install(self._configured(installed.function, body))
        installed.created.update({k: v for k, v in body.items() if k in _DESCRIBED})
        return reply(200, self._description(installed))

    async def update(self, request: web.Request) -> web.Response:
        """UpdateFunctionCode."""
        body = await json_body(request)
        installed = self._find(request)
        name = installed.function.name
        directory = self._directory / "functions" / f"{name}-{uuid.uuid4().hex[:8]}"
        data = unzip(body, directory)
        installed = self._host.install(replace(installed.function, code=directory))
        self._describe(installed, installed.created, data)
        return reply(200, self._description(installed))

    async def delete(self, request: web.Request) -> web.Response:
        """DeleteFunction."""
        function = self._find(request).function
        self._host.uninstall(function.name)
        if function.code is not None and function.code.is_relative_to(self._directory):
            shutil.rmtree(function.code, ignore_errors=True)
        return reply(204, None)

    async def tags(self, request: web.Request) -> web.Response:
        """ListTags."""
        return reply(200, {"Tags": self._find(request).created.get("Tags", {})})

    # Concurrency and events.

    async def account(self, request: web.Request) -> web.Response:
        """GetAccountSettings."""
        concurrency = self._host.concurrency
        limit = {
            "TotalCodeSize": 80_530_636_800,
            "CodeSizeUnzipped": 262_144_000,
            "CodeSizeZipped": 52_428_800,
            "ConcurrentExecutions": concurrency.account,
            "UnreservedConcurrentExecutions": concurrency.account
            - sum(concurrency.reserved.values()),
        }
        usage = {"TotalCodeSize": 0, "FunctionCount": len(self._host.functions)}
        return reply(200, {"AccountLimit": limit, "AccountUsage": usage})

    async def concurrency(self, request: web.Request) -> web.Response:
        """GetFunctionConcurrency."""
        return reply(200, self._reserved(self._find(request).function.name))

    async def reserve(self, request: web.Request) -> web.Response:
        """PutFunctionConcurrency and DeleteFunctionConcurrency."""
        name = self._find(request).function.name
        if request.method == "DELETE":
            self._host.concurrency.reserved.pop(name, None)
            return reply(204, None)
        body = await json_body(request)
        self._host.concurrency.reserved[name] = _whole(
            body, "ReservedConcurrentExecutions", range(1 << 31)
        )
        self._host.events.pump()
        return reply(200, self._reserved(name))

    async def events(self, request: web.Request) -> web.Response:
        """GetFunctionEventInvokeConfig."""
        installed = self._find(request)
        # The host's own functions have those of its flags.
        if "Events" not in installed.created and installed.function.code is not None:
            text = (
                f"The function {installed.function.arn}:{LATEST} doesn't have an EventInvokeConfig"
            )
            raise ApiError(404, "ResourceNotFoundException", text)
        return reply(200, self._event_rules(installed))

    async def set_events(self, request: web.Request) -> web.Response:
        """PutFunctionEventInvokeConfig."""
        body = await json_body(request)
        installed = self._find(request)
        installed.events = EventRules(
            retries=_whole(body, "MaximumRetryAttempts", range(3), 2),
            age_s=_whole(body, "MaximumEventAgeInSeconds", range(60, 21_601), 21_600),
        )
        installed.created["Events"] = True
        return reply(200, self._event_rules(installed))

    # Another service, on the same address.

    async def identity(self, request: web.Request) -> web.Response:
        """STS' GetCallerIdentity."""
        body = parse_qs((await request.read()).decode()).get("Action")
        if body != ["GetCallerIdentity"]:
            raise ApiError(400, "InvalidAction", f"this host cannot do {body}")
        text = _IDENTITY.format(account=ACCOUNT, request=uuid.uuid4())
        return web.Response(text=text, content_type="text/xml")

    # What they share.

    def _find(self, request: web.Request) -> InstalledFunction:
        return self._host.find(request.match_info["name"], request.query.get("Qualifier", ""))

    def _configured(self, function: LambdaFunction, body: Mapping[str, Any]) -> LambdaFunction:
        environment = body.get("Environment", {}).get("Variables", function.environment)
        layers = [self._layers.find(arn).directory for arn in body.get("Layers") or ()]
        return replace(
            function,
            handler=body.get("Handler", function.handler),
            timeout_s=float(
                _whole(body, "Timeout", range(1, int(MAX_TIMEOUT_S) + 1), int(function.timeout_s))
            ),
            memory_mib=_whole(body, "MemorySize", MEMORY_MIB, function.memory_mib),
            environment=environment,
            layers=tuple(layers) if "Layers" in body else function.layers,
        )

    def _describe(self, installed: InstalledFunction, body: Mapping[str, Any], data: bytes) -> None:
        kept = {k: v for k, v in body.items() if k in _DESCRIBED | {"Tags", "Layers", "Events"}}
        installed.created = {**kept, "CodeSize": len(data), "CodeSha256": sha256(data)}

    def _description(self, installed: InstalledFunction) -> dict[str, Any]:
        function = installed.function
        layers: list[str] = installed.created.get("Layers") or []
        return {
            "Runtime": RUNTIME,
            "Role": f"arn:aws:iam::{ACCOUNT}:role/sbench",
            "Architectures": ["x86_64"],
            "PackageType": "Zip",
            "CodeSize": 0,
            "CodeSha256": sha256(b""),
            **{k: v for k, v in installed.created.items() if k not in {"Tags", "Events"}},
            "FunctionName": function.name,
            "FunctionArn": function.arn,
            "Handler": function.handler,
            "Timeout": int(function.timeout_s),
            "MemorySize": function.memory_mib,
            "LastModified": stamp(),
            "Version": LATEST,
            "Environment": {"Variables": dict(function.environment)},
            "Layers": [{"Arn": arn, "CodeSize": 0} for arn in layers],
            "State": "Active",
            "LastUpdateStatus": "Successful",
        }

    def _reserved(self, name: str) -> dict[str, int]:
        reserved = self._host.concurrency.reserved.get(name)
        return {} if reserved is None else {"ReservedConcurrentExecutions": reserved}

    def _event_rules(self, installed: InstalledFunction) -> dict[str, Any]:
        return {
            "FunctionArn": f"{installed.function.arn}:{LATEST}",
            "MaximumRetryAttempts": installed.events.retries,
            "MaximumEventAgeInSeconds": int(installed.events.age_s),
        }


def _whole(body: Mapping[str, Any], name: str, allowed: range, otherwise: int | None = None) -> int:
    value = body.get(name, otherwise)
    if not isinstance(value, int) or value not in allowed:
        text = f"Value {value!r} at {name!r} must be {allowed.start} to {allowed.stop - 1}"
        raise ApiError(400, "InvalidParameterValueException", text)
    return value
