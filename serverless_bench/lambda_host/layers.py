"""Layers of the control API: published, listed, deleted, never changed."""

import base64
import hashlib
import io
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serverless_bench.clock import utc_stamp
from serverless_bench.lambda_host.responses import ApiError
from serverless_bench.lambda_host.settings import ACCOUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One version of a layer."""

    name: str
    version: int
    directory: Path
    description: dict[str, Any]
    """As the API describes it."""


class Layers:
    """Every layer of the account.

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
        self._versions: dict[str, dict[int, Layer]] = {}
        self._last: dict[str, int] = {}

    def publish(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Add a version and return its description."""
        version = self._last[name] = self._last.get(name, 0) + 1
        directory = self._directory / name / str(version)
        data = unzip(body["Content"], directory)
        description = {
            "Content": {"CodeSize": len(data), "CodeSha256": sha256(data), "Location": ""},
            "LayerArn": f"{self._prefix}:{name}",
            "LayerVersionArn": f"{self._prefix}:{name}:{version}",
            "Description": body.get("Description", ""),
            "CreatedDate": stamp(),
            "Version": version,
            "CompatibleRuntimes": body.get("CompatibleRuntimes", []),
        }
        layer = Layer(name=name, version=version, directory=directory, description=description)
        self._versions.setdefault(name, {})[version] = layer
        return description

    def latest(self) -> list[dict[str, Any]]:
        """Return the last version of each."""
        newest = (versions[max(versions)] for versions in self._versions.values())
        return [
            {
                "LayerName": layer.name,
                "LayerArn": layer.description["LayerArn"],
                "LatestMatchingVersion": layer.description,
            }
            for layer in newest
        ]

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return all versions of one, the last first."""
        return [
            v.description for _, v in sorted(self._versions.get(name, {}).items(), reverse=True)
        ]

    def get(self, name: str, version: int) -> Layer:
        """Return one version.

        Raises
        ------
        ApiError
            404 if there is no such one.
        """
        found = self._versions.get(name.rpartition(":")[2], {}).get(version)
        if found is None:
            raise ApiError(
                404, "ResourceNotFoundException", "The resource you requested does not exist."
            )
        return found

    def find(self, arn: str) -> Layer:
        """Return the version with an address.

        Raises
        ------
        ApiError
            400 if there is no such one.
        """
        layer, _, version = arn.rpartition(":")
        try:
            return self.get(layer, int(version))
        except (ApiError, ValueError) as exc:
            text = f"Layer version {arn} does not exist."
            raise ApiError(400, "InvalidParameterValueException", text) from exc

    def delete(self, name: str, version: int) -> None:
        """Forget a version; functions that have it keep it."""
        versions = self._versions.get(name.rpartition(":")[2], {})
        versions.pop(version, None)
        if not versions:
            self._versions.pop(name.rpartition(":")[2], None)


def unzip(content: dict[str, Any], directory: Path) -> bytes:
    """Unpack the ``ZipFile`` of a request into a new directory, and return the zip.

    Raises
    ------
    ApiError
        400 if there is none in it.
    """
    if "ZipFile" not in content:
        text = "this host takes code as a ZipFile only"
        raise ApiError(400, "InvalidParameterValueException", text)
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
        text = "Could not unzip uploaded file. Please check your file, then try to upload again."
        raise ApiError(400, "InvalidParameterValueException", text) from exc
    return data


def sha256(data: bytes) -> str:
    """Return a checksum as the API has it."""
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def stamp() -> str:
    """Return now as the API has it."""
    return utc_stamp(separators=True).replace("Z", ".000+0000")
