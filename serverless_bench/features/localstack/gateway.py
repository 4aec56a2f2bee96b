"""Restrict LocalStack to processes of this user, and exclude web pages.

A caller of LocalStack can deploy a function, which runs code as this user. LocalStack accepts
any credentials, and has no other protection. This file is copied into LocalStack's environment,
with ``features/loopback/listener.py``; LocalStack finds it by its entry point (the group
``localstack.runtime.server``), because ``GATEWAY_SERVER`` names it.
"""

from typing import Any

from localstack.runtime.server import hypercorn
from localstack.runtime.server.core import RuntimeServerPlugin

from serverless_bench.features.loopback.listener import OwnListener, from_a_page


class _Config(hypercorn.Config):  # type: ignore[misc]  # LocalStack has no types here
    """The server's settings, with sockets that accept connections of this user only."""

    def create_sockets(self) -> Any:
        """Return the sockets to listen on."""
        sockets = super().create_sockets()
        for bound in (sockets.secure_sockets, sockets.insecure_sockets):
            bound[:] = map(OwnListener.from_socket, bound)
        return sockets


# `register` creates its settings from the class with this name in the module.
hypercorn.Config = _Config


class SbenchServer(hypercorn.HypercornRuntimeServer):  # type: ignore[misc]  # LocalStack has no types here
    """LocalStack's server on asyncio, which listens only on the configured addresses."""

    def register(self, gateway: Any, *arguments: Any, **options: Any) -> None:
        """Serve a gateway, with a handler in front of all others."""
        gateway.request_handlers.insert(0, _refuse_pages)
        super().register(gateway, *arguments, **options)


class SbenchServerPlugin(RuntimeServerPlugin):  # type: ignore[misc]  # LocalStack has no types here
    """Plugin that the entry point names."""

    name = "sbench"

    def load(self, *arguments: object, **options: object) -> SbenchServer:
        """Return the server."""
        return SbenchServer()


def _refuse_pages(chain: Any, context: Any, response: Any) -> None:
    headers = context.request.headers
    if from_a_page(headers.get("Host", ""), headers.get("Origin")):
        chain.respond(403, "this LocalStack rejects requests from web pages")
        # The request is neither counted nor logged, and no header lets a page read the response.
        chain.terminate()
