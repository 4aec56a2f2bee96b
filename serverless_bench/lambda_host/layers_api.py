"""The part of the control API that is about layers."""

from typing import Final

from aiohttp import web

from serverless_bench.lambda_host.layers import Layers
from serverless_bench.lambda_host.responses import json_body, reply

_LAYERS: Final = "/2018-10-31/layers"


class LayersApi:
    """Publishes, lists and deletes layers.

    Parameters
    ----------
    layers
        Where they are.
    """

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def routes(self) -> list[web.RouteDef]:
        """Return its routes."""
        one = f"{_LAYERS}/{{layer}}/versions"
        return [
            web.get(_LAYERS, self.all),
            web.get(one, self.versions),
            web.post(one, self.publish),
            web.get(f"{one}/{{version}}", self.get),
            web.delete(f"{one}/{{version}}", self.delete),
        ]

    async def all(self, request: web.Request) -> web.Response:
        """ListLayers."""
        return reply(200, {"Layers": self._layers.latest()})

    async def versions(self, request: web.Request) -> web.Response:
        """ListLayerVersions."""
        return reply(200, {"LayerVersions": self._layers.versions(request.match_info["layer"])})

    async def publish(self, request: web.Request) -> web.Response:
        """PublishLayerVersion."""
        return reply(
            201, self._layers.publish(request.match_info["layer"], await json_body(request))
        )

    async def get(self, request: web.Request) -> web.Response:
        """GetLayerVersion."""
        return reply(200, self._layers.get(*_named(request)).description)

    async def delete(self, request: web.Request) -> web.Response:
        """DeleteLayerVersion."""
        self._layers.delete(*_named(request))
        return reply(204, None)


def _named(request: web.Request) -> tuple[str, int]:
    version = request.match_info["version"]
    return request.match_info["layer"], int(version) if version.isdigit() else 0
