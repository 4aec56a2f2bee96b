"""The part of the control API that is about layers: published, listed, deleted, never changed."""

import base64
import hashlib
import io
import stat
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from serverless_bench.clock import utc_stamp
from serverless_bench.lab.lambda_host.responses import ApiError, operation
from serverless_bench.lab.lambda_host.settings import ACCOUNT

_LAYERS: Final = "/2018-10-31/layers"


class Layers:
    """Every layer of the account; a method for each operation, and called so.

    Parameters
    ----------
    region
        Part of their addresses.
    directory
        Their content goes here.
    """

    def __init__(self, region: str, directory: Path) -> None:
        self._prefix = f"arn:aws:lambda:{region}:{ACCOUNT}:layer"
        self._directory = directory
        self._versions: dict[tuple[str, int], dict[str, Any]] = {}
        """As the API describes them."""
        self._last: Counter[str] = Counter()
        all_of = f"{_LAYERS}/{{layer}}/versions"
        one = f"{all_of}/{{version}}"
        self.routes = [
            operation("GET", _LAYERS, 200, self._list_layers),
            operation("GET", all_of, 200, self._list_layer_versions),
            operation("POST", all_of, 201, self._publish_layer_version),
            operation("GET", one, 200, self._get_layer_version),
            operation("DELETE", one, 204, self._delete_layer_version),
        ]

    def find(self, arn: str) -> Path:
        """Return the directory of the version with an address.

        Raises
        ------
        ApiError
            400 if there is no such one.
        """
        layer, _, version = arn.rpartition(":")
        name, number = key = _key(layer, version)
        if key not in self._versions:
            raise ApiError(
                400, "InvalidParameterValueException", f"Layer version {arn} does not exist."
            )
        return self._directory / name / str(number)

    def _list_layers(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        # They were published in order: of each the last one stays.
        latest = {name: described for (name, _), described in self._versions.items()}
        return {
            "Layers": [
                {"LayerName": name, "LayerArn": last["LayerArn"], "LatestMatchingVersion": last}
                for name, last in latest.items()
            ]
        }

    def _list_layer_versions(self, request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
        wanted = request.match_info["layer"]
        found = [described for (name, _), described in self._versions.items() if name == wanted]
        return {"LayerVersions": found[::-1]}

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
        found = self._versions.get(_key(**request.match_info))
        if found is None:
            raise ApiError(
                404, "ResourceNotFoundException", "The resource you requested does not exist."
            )
        return found

    def _delete_layer_version(self, request: web.Request, body: dict[str, Any]) -> None:
        # Functions that have it keep it.
        self._versions.pop(_key(**request.match_info), None)


def _key(layer: str, version: str) -> tuple[str, int]:
    return layer.rpartition(":")[2], int(version) if version.isdigit() else 0


def unzip(content: Mapping[str, Any], directory: Path) -> bytes:
    """Unpack the ``ZipFile`` of a request into a new directory, and return the zip.

    Raises
    ------
    ApiError
        400 if there is none in it.
    """
    if "ZipFile" not in content:
        raise ApiError(
            400, "InvalidParameterValueException", "this host takes code as a ZipFile only"
        )
    data = base64.b64decode(content["ZipFile"])
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # extractall() keeps every member inside, whatever its name says.
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
    """Return a checksum as the API has it."""
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def stamp() -> str:
    """Return now as the API has it."""
    return utc_stamp(separators=True).replace("Z", ".000+0000")
