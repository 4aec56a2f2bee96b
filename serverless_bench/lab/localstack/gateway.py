"""Have LocalStack answer this user's processes and no web page.

Whoever may call it can deploy a function, which runs code as this user. Its credentials are
anybody's, and it has no other lock. This file is copied into LocalStack's environment, with
``process/callers.py`` beside it; LocalStack finds it by its entry point (the group
``localstack.runtime.server``), because ``GATEWAY_SERVER`` names it.
"""

from typing import Any

from localstack.runtime.server import hypercorn
from localstack.runtime.server.core import RuntimeServerPlugin
from sbench_callers import OwnListener, from_a_page


class _Config(hypercorn.Config):  # type: ignore[misc]  # LocalStack has no types here
    """The server's settings, with sockets that accept this user's connections only."""

    def create_sockets(self) -> Any:  # noqa: ANN401 - Hypercorn's own
        """Return the sockets to listen on."""
        made = super().create_sockets()
        for bound in (made.secure_sockets, made.insecure_sockets):
            bound[:] = map(OwnListener.of, bound)
        return made


# `register` makes its settings of what has this name there.
hypercorn.Config = _Config


class SbenchServer(hypercorn.HypercornRuntimeServer):  # type: ignore[misc]  # LocalStack has no types here
    """LocalStack's server on asyncio, which listens where it is told and nowhere else."""

    def register(self, gateway: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - LocalStack's own
        """Serve a gateway, behind a handler that comes before all others."""
        gateway.request_handlers.insert(0, _refuse_pages)
        super().register(gateway, *arguments, **options)


class SbenchServerPlugin(RuntimeServerPlugin):  # type: ignore[misc]  # LocalStack has no types here
    """What the entry point names."""

    name = "sbench"

    def load(self, *arguments: object, **options: object) -> SbenchServer:
        """Return the server."""
        return SbenchServer()


def _refuse_pages(chain: Any, context: Any, response: Any) -> None:  # noqa: ANN401 - LocalStack's own
    headers = context.request.headers
    if from_a_page(headers.get("Host", ""), headers.get("Origin")):
        chain.respond(403, "this LocalStack answers no web page")
        # Nothing of it is counted or logged, and no header lets a page read it.
        chain.terminate()
