"""Whose requests the host takes: those of its own user, with the token that it made at its start.

Whoever may invoke a function runs code as this user. So a connection has to be this user's, as
the kernel says it, and a path begins with the token, which only those know who were given the
host's address. The functions' own requests have no token (the runtime client knows no path):
there the kernel's word alone counts, and the address that a connection came to.
"""

import asyncio
import secrets
from collections.abc import Iterable
from weakref import WeakSet

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from serverless_bench.lambda_host.responses import ApiError
from serverless_bench.process.callers import from_a_page, same_user


class Callers:
    """Tells this user's requests from others."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(24)
        self.path = f"/{self._token}"
        """How the path of every request to the host begins."""
        self._known: WeakSet[asyncio.BaseTransport] = WeakSet()

    def refusal(self, request: web.BaseRequest) -> str:
        """Return why a request is not this user's own; empty if it is."""
        if from_a_page(request.headers.get("Host", ""), request.headers.get("Origin")):
            return "this host answers no web page"
        return "" if self._is_own(request.transport) else "this host is another user's"

    def _is_own(self, transport: asyncio.Transport | None) -> bool:
        if transport is None:
            return False
        if transport in self._known:
            return True
        peer, own = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        # Once it is closed, the kernel knows no longer; but then it has no request.
        if not peer or not own or not same_user(peer, own):
            return False
        self._known.add(transport)
        return True

    def behind_token(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """Return the routes of requests that know the token."""
        return [
            web.route(one.method, f"{self.path}{one.path}", one.handler, **one.kwargs)
            for one in routes
        ]

    def middleware(self) -> Middleware:
        """Return what refuses all other requests.

        Raises
        ------
        ApiError
            403, when it is called.
        """

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if why := self.refusal(request):
                raise ApiError(403, "AccessDeniedException", why)
            token = request.path.partition("/")[2].partition("/")[0]
            if not secrets.compare_digest(token.encode(), self._token.encode()):
                why = "the token is missing: AWS_ENDPOINT_URL_LAMBDA has to be as the host says it"
                raise ApiError(403, "AccessDeniedException", why)
            return await handler(request)

        return check
