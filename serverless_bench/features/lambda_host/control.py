"""The control API, as far as Lithops and ``sbench doctor`` use it, including layers.

(AWS Lambda API reference; the dates in the paths are versions of the API.)
"""

import base64
import hashlib
import io
import shutil
import stat
import uuid
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import web

from serverless_bench.base.clock import utc_stamp
from serverless_bench.features.lambda_host.functions import LATEST, RUNTIME, LambdaFunction
from serverless_bench.features.lambda_host.host import EventRules, InstalledFunction, LambdaHost
from serverless_bench.features.lambda_host.responses import ApiError, operation
from serverless_bench.features.lambda_host.settings import ACCOUNT, MAX_TIMEOUT_S, MEMORY_MIB, arn

_LAYERS: Final = "/2018-10-31/layers"


class Layers:
    """All layers of the account, with a method named after each operation.

    Parameters
    ----------
    region
        Region of the ARNs.
    directory
        Directory for the content of layers.
    """

    def __init__(self, region: str, directory: Path) -> None:
        self._prefix = f"arn:aws:lambda:{region}:{ACCOUNT}:layer"
        self._directory = directory
        self._versions: dict[tuple[str, int], dict[str, Any]] = {}
        """Versions, in the format of the API."""
        self._last: Counter[str] = Counter()
        all_of = f"{_LAYERS}/{{layer}}/versions"
        version = f"{all_of}/{{version}}"
        self.routes = [
            operation("GET", _LAYERS, 200, self._list_layers),
            operation("GET", all_of, 200, self._list_layer_versions),
            operation("POST", all_of, 201, self._publish_layer_version),
            operation("GET", version, 200, self._get_layer_version),
            operation("DELETE", version, 204, self._delete_layer_version),
        ]

    def find(self, arn: str) -> Path:
        """Return the directory of the version with an ARN.

        Raises
        ------
        ApiError
            400 if there is no such version.
        """
        layer, _, version = arn.rpartition(":")
        name, number = key = _key(layer, version)
        if key not in self._versions:
            raise ApiError(
                400, "InvalidParameterValueException", f"Layer version {arn} does not exist."
            )
        return self._directory / name / str(number)

    def _list_layers(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        # Versions are in the order of publication, so the last of each layer remains.
        latest = {name: described for (name, _), described in self._versions.items()}
        return {
            "Layers": [
                {"LayerName": name, "LayerArn": last["LayerArn"], "LatestMatchingVersion": last}
                for name, last in latest.items()
            ]
        }

    def _list_layer_versions(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        wanted = request.match_info["layer"]
        versions = [described for (name, _), described in self._versions.items() if name == wanted]
        return {"LayerVersions": versions[::-1]}

    def _publish_layer_version(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        name = request.match_info["layer"]
        version = self._last[name] = self._last[name] + 1
        data = unzip(body.get("Content", {}), self._directory / name / str(version))
        self._versions[name, version] = {
            "Content": {"CodeSize": len(data), "CodeSha256": sha256(data), "Location": ""},
            "LayerArn": f"{self._prefix}:{name}",
            "LayerVersionArn": f"{self._prefix}:{name}:{version}",
            "Description": body.get("Description", ""),
            "CreatedDate": stamp(),
            "Version": version,
            "CompatibleRuntimes": body.get("CompatibleRuntimes", []),
        }
        return self._versions[name, version]

    def _get_layer_version(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        version = self._versions.get(_key(**request.match_info))
        if version is None:
            raise ApiError(
                404, "ResourceNotFoundException", "The resource you requested does not exist."
            )
        return version

    def _delete_layer_version(self, request: web.Request, body: dict[str, Any]) -> None:
        # Functions with this layer keep it.
        self._versions.pop(_key(**request.match_info), None)


def _key(layer: str, version: str) -> tuple[str, int]:
    return layer.rpartition(":")[2], int(version) if version.isdigit() else 0


def unzip(content: Mapping[str, Any], directory: Path) -> bytes:
    """Unpack the ``ZipFile`` of a request into a new directory, and return the zip.

    Raises
    ------
    ApiError
        400 if the request has no valid zip.
    """
    if "ZipFile" not in content:
        raise ApiError(
            400, "InvalidParameterValueException", "this host accepts code only as a ZipFile"
        )
    data = base64.b64decode(content["ZipFile"])
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # extractall() keeps all members inside, regardless of their names.
            archive.extractall(directory)
            for member in archive.infolist():
                mode = stat.S_IMODE(member.external_attr >> 16)
                if mode & 0o111:
                    (directory / member.filename).chmod(mode | 0o600)
    except (zipfile.BadZipFile, OSError) as exc:
        raise ApiError(
            400,
            "InvalidParameterValueException",
            "Could not unzip uploaded file. Please check your file, then try to upload again.",
        ) from exc
    return data


def sha256(data: bytes) -> str:
    """Return a checksum in the format of the API."""
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def stamp() -> str:
    """Return the present time in the format of the API."""
    return utc_stamp(separators=True).replace("Z", ".000+0000")


_FUNCTIONS: Final = "/2015-03-31/functions"
_IDENTITY: Final = """\
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>arn:aws:iam::{account}:user/sbench</Arn>
<UserId>AIDASBENCHLAMBDAHOST</UserId><Account>{account}</Account></GetCallerIdentityResult>
<ResponseMetadata><RequestId>{request}</RequestId></ResponseMetadata>
</GetCallerIdentityResponse>"""
_RESERVED: Final = "ReservedConcurrentExecutions"
_DESCRIBED: Final = frozenset(
    ["Architectures", "Description", "EphemeralStorage", "PackageType", "Role", "Runtime"]
)

_Members = dict[str, Any]


class ControlApi:
    """Creates, describes and deletes functions, with a method named after each operation.

    Parameters
    ----------
    host
        Host of the functions.
    layers
        Layers that functions may use.
    directory
        Directory for code.
    """

    def __init__(self, host: LambdaHost, layers: Layers, directory: Path) -> None:
        self._host = host
        self._layers = layers
        self._directory = directory
        function = f"{_FUNCTIONS}/{{name}}"
        reserved = "/functions/{name}/concurrency"
        events = "/2019-09-25/functions/{name}/event-invoke-config"
        # botocore removed the last slash of these paths in 2025, hence "/?".
        self.routes = [
            web.post("{_:/?}", _get_caller_identity),
            operation("POST", _FUNCTIONS, 201, self._create_function),
            operation("GET", f"{_FUNCTIONS}{{_:/?}}", 200, self._list_functions),
            operation("GET", function, 200, self._get_function),
            operation("DELETE", function, 204, self._delete_function),
            operation("GET", f"{function}/configuration", 200, self._get_function_configuration),
            operation("PUT", f"{function}/configuration", 200, self._update_function_configuration),
            operation("PUT", f"{function}/code", 200, self._update_function_code),
            operation("GET", f"/2019-09-30{reserved}", 200, self._get_function_concurrency),
            operation("PUT", f"/2017-10-31{reserved}", 200, self._put_function_concurrency),
            operation("DELETE", f"/2017-10-31{reserved}", 204, self._delete_function_concurrency),
            operation("GET", events, 200, self._get_function_event_invoke_config),
            operation("PUT", events, 200, self._put_function_event_invoke_config),
            operation("GET", "/2016-08-19/account-settings{_:/?}", 200, self._get_account_settings),
            operation("GET", "/2017-03-31/tags/{name}", 200, self._list_tags),
        ]

    # Functions.

    def _create_function(self, request: web.Request, body: dict[str, Any]) -> _Members:
        for member in ("FunctionName", "Handler"):
            if not body.get(member):
                raise ApiError(400, "InvalidParameterValueException", f"{member} is missing")
        name = body["FunctionName"].rpartition(":")[2]
        if name in self._host.functions:
            raise ApiError(409, "ResourceConflictException", f"Function already exist: {name}")
        function = LambdaFunction(
            name=name,
            arn=arn(self._host.settings.region, name),
            handler=body["Handler"],
            shared=self._host.settings.share_packages,
            preload=self._host.settings.preload,
        )
        return self._deploy(self._configured(function, body), body.get("Code", {}), body)

    def _list_functions(self, request: web.Request, body: dict[str, Any]) -> _Members:
        return {
            "Functions": [_description(installed) for installed in self._host.functions.values()]
        }

    def _get_function(self, request: web.Request, body: dict[str, Any]) -> _Members:
        installed = self._find(request)
        described = {
            "Configuration": _description(installed),
            "Code": {"RepositoryType": "S3", "Location": ""},
            "Tags": installed.created.get("Tags", {}),
        }
        if reserved := self._get_function_concurrency(request, body):
            described["Concurrency"] = reserved
        return described

    def _get_function_configuration(self, request: web.Request, body: dict[str, Any]) -> _Members:
        return _description(self._find(request))

    def _update_function_configuration(
        self, request: web.Request, body: dict[str, Any]
    ) -> _Members:
        installed = self._host.install(self._configured(self._find(request).function, body))
        installed.created.update({k: v for k, v in body.items() if k in _DESCRIBED})
        return _description(installed)

    def _update_function_code(self, request: web.Request, body: dict[str, Any]) -> _Members:
        installed = self._find(request)
        return self._deploy(installed.function, body, installed.created)

    def _delete_function(self, request: web.Request, body: dict[str, Any]) -> None:
        function = self._find(request).function
        self._host.uninstall(function.name)
        if function.code is not None and function.code.is_relative_to(self._directory):
            shutil.rmtree(function.code, ignore_errors=True)

    def _list_tags(self, request: web.Request, body: dict[str, Any]) -> _Members:
        return {"Tags": self._find(request).created.get("Tags", {})}

    # Concurrency and events.

    def _get_account_settings(self, request: web.Request, body: dict[str, Any]) -> _Members:
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
        return {"AccountLimit": limit, "AccountUsage": usage}

    def _get_function_concurrency(self, request: web.Request, body: dict[str, Any]) -> _Members:
        reserved = self._host.concurrency.reserved.get(self._find(request).function.name)
        return {} if reserved is None else {_RESERVED: reserved}

    def _put_function_concurrency(self, request: web.Request, body: dict[str, Any]) -> _Members:
        reserved = _whole(body, _RESERVED, range(1 << 31))
        self._host.concurrency.reserved[self._find(request).function.name] = reserved
        self._host.events.pump()
        return {_RESERVED: reserved}

    def _delete_function_concurrency(self, request: web.Request, body: dict[str, Any]) -> None:
        self._host.concurrency.reserved.pop(self._find(request).function.name, None)

    def _get_function_event_invoke_config(
        self, request: web.Request, body: dict[str, Any]
    ) -> _Members:
        installed = self._find(request)
        address = f"{installed.function.arn}:{LATEST}"
        # Built-in functions of the host have the configuration from its flags.
        if "Events" not in installed.created and installed.function.code is not None:
            raise ApiError(
                404,
                "ResourceNotFoundException",
                f"The function {address} doesn't have an EventInvokeConfig",
            )
        return {
            "FunctionArn": address,
            "MaximumRetryAttempts": installed.events.retries,
            "MaximumEventAgeInSeconds": int(installed.events.age_s),
        }

    def _put_function_event_invoke_config(
        self, request: web.Request, body: dict[str, Any]
    ) -> _Members:
        installed = self._find(request)
        installed.events = EventRules(
            retries=_whole(body, "MaximumRetryAttempts", range(3), 2),
            age_s=_whole(body, "MaximumEventAgeInSeconds", range(60, 21_601), 21_600),
        )
        installed.created["Events"] = True
        return self._get_function_event_invoke_config(request, body)

    # Shared helpers.

    def _find(self, request: web.Request) -> InstalledFunction:
        return self._host.find(request.match_info["name"], request.query.get("Qualifier", ""))

    def _configured(self, function: LambdaFunction, body: Mapping[str, Any]) -> LambdaFunction:
        layers = tuple(self._layers.find(arn) for arn in body.get("Layers") or ())
        return replace(
            function,
            handler=body.get("Handler", function.handler),
            timeout_s=float(
                _whole(body, "Timeout", range(1, int(MAX_TIMEOUT_S) + 1), int(function.timeout_s))
            ),
            memory_mib=_whole(body, "MemorySize", MEMORY_MIB, function.memory_mib),
            environment=body.get("Environment", {}).get("Variables", function.environment),
            layers=layers if "Layers" in body else function.layers,
        )

    def _deploy(
        self, function: LambdaFunction, code: Mapping[str, Any], described: Mapping[str, Any]
    ) -> _Members:
        """Install a function with new code, and return the description."""
        directory = self._directory / "functions" / f"{function.name}-{uuid.uuid4().hex[:8]}"
        data = unzip(code, directory)
        installed = self._host.install(replace(function, code=directory))
        kept = {
            k: v for k, v in described.items() if k in _DESCRIBED | {"Tags", "Layers", "Events"}
        }
        installed.created = {**kept, "CodeSize": len(data), "CodeSha256": sha256(data)}
        return _description(installed)


async def _get_caller_identity(request: web.Request) -> web.Response:
    """Respond like STS, a different service, at the same address."""
    action = parse_qs((await request.read()).decode()).get("Action")
    if action != ["GetCallerIdentity"]:
        raise ApiError(400, "InvalidAction", f"this host does not support {action}")
    text = _IDENTITY.format(account=ACCOUNT, request=uuid.uuid4())
    return web.Response(text=text, content_type="text/xml")


def _description(installed: InstalledFunction) -> _Members:
    function = installed.function
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
        "Layers": [{"Arn": arn, "CodeSize": 0} for arn in installed.created.get("Layers") or ()],
        "State": "Active",
        "LastUpdateStatus": "Successful",
    }


def _whole(body: Mapping[str, Any], name: str, allowed: range, otherwise: int | None = None) -> int:
    value = body.get(name, otherwise)
    if not isinstance(value, int) or value not in allowed:
        raise ApiError(
            400,
            "InvalidParameterValueException",
            f"Value {value!r} at {name!r} must be {allowed.start} to {allowed.stop - 1}",
        )
    return value
