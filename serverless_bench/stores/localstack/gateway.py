"""Have LocalStack answer this user's processes and no web page.

Whoever may call it can deploy a function, which runs code as this user. Its credentials are
anybody's, and it has no other lock. This file is copied into LocalStack's environment, with
``process/callers.py`` beside it; LocalStack finds it by its entry point (the group
``localstack.runtime.server``), because ``GATEWAY_SERVER`` names it.
"""

from typing import Any

from localstack.runtime.server.core import RuntimeServerPlugin
from localstack.runtime.server.hypercorn import HypercornRuntimeServer
from sbench_callers import from_a_page, same_user


class SbenchServer(HypercornRuntimeServer):  # type: ignore[misc]  # LocalStack has no types here
    """LocalStack's server on asyncio, which listens where it is told and nowhere else."""

    def register(self, gateway: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - LocalStack's own
        """Serve a gateway, behind a handler that comes before all others."""
        gateway.request_handlers.insert(0, _refuse_others)
        super().register(gateway, *arguments, **options)


class SbenchServerPlugin(RuntimeServerPlugin):  # type: ignore[misc]  # LocalStack has no types here
    """What the entry point names."""

    name = "sbench"

    def load(self, *arguments: object, **options: object) -> SbenchServer:
        """Return the server."""
        return SbenchServer()


def _refuse_others(chain: Any, context: Any, response: Any) -> None:  # noqa: ANN401 - LocalStack's own
    request = context.request
    seen = request.environ
    peer = seen["REMOTE_ADDR"], int(seen["REMOTE_PORT"])
    own = seen["SERVER_NAME"], int(seen["SERVER_PORT"])
    if from_a_page(request.headers.get("Host", ""), request.headers.get("Origin")):
        why = "this LocalStack answers no web page"
    elif not same_user(peer, own):
        why = "this LocalStack is another user's"
    else:
        return
    chain.respond(403, why)
    # Nothing of it is counted or logged, and no header lets a page read it.
    chain.terminate()
