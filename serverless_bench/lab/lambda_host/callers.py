"""Which requests the host takes: those with the token that it made at its start, and of no page.

Whoever may invoke a function runs code as this user. So the host accepts connections of this
user alone (``OwnListener``), and a path begins with the token, which only those know who were
given the host's address. The functions' own requests have no token, because the runtime client
knows no path: there the kernel's word alone counts, and the address that a connection came to.
"""

import secrets
from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from serverless_bench.lab.lambda_host.responses import ApiError
from serverless_bench.process.callers import from_a_page


def is_page(request: web.BaseRequest) -> bool:
    """Tell whether a web page makes a request."""
    return from_a_page(request.headers.get("Host", ""), request.headers.get("Origin"))


class Callers:
    """Tells requests that know the token from others."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(24)
        self.path = f"/{self._token}"
        """How the path of every request to the host begins."""

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
            if is_page(request):
                raise ApiError(403, "AccessDeniedException", "this host answers no web page")
            token = request.path.partition("/")[2].partition("/")[0]
            if not secrets.compare_digest(token.encode(), self._token.encode()):
                why = "the token is missing: AWS_ENDPOINT_URL_LAMBDA has to be as the host says it"
                raise ApiError(403, "AccessDeniedException", why)
            return await handler(request)

        return check
