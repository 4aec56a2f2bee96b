"""The listener for Lambda's clients, which accepts only callers with its token and no web pages.

A caller that may invoke a function can run code as this user. Therefore the host accepts only
connections of the same user (``OwnListener``), and paths begin with a token that is part of the
host's address. The functions' requests have no token, because the runtime client supports no
path: there only the kernel's information counts, with the address of the connection.
"""

import asyncio
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from serverless_bench.base.errors import UsageError
from serverless_bench.base.process import allow_open_files
from serverless_bench.base.units import MIB
from serverless_bench.features.lambda_host.admin_api import AdminApi
from serverless_bench.features.lambda_host.control import ControlApi, Layers
from serverless_bench.features.lambda_host.counters import HostCounters
from serverless_bench.features.lambda_host.functions import PACKAGES, LambdaFunction, make_runtime
from serverless_bench.features.lambda_host.host import Deliver, LambdaHost
from serverless_bench.features.lambda_host.invoke import InvokeApi
from serverless_bench.features.lambda_host.limits import EnvironmentLimits
from serverless_bench.features.lambda_host.pool import Shared
from serverless_bench.features.lambda_host.responses import ApiError, reply
from serverless_bench.features.lambda_host.runtime_api import BACKLOG, RuntimeApi, is_page
from serverless_bench.features.lambda_host.settings import HostSettings
from serverless_bench.features.loopback.listener import OwnListener, report_unless_shortage

_FILES_EACH: Final = 2
"""Open files per invocation: its environment's connection, and its caller's."""
_SPARE_FILES: Final = 64
"""The idle host has 10, and twenty simultaneous starts need 20 more for a moment."""
_EXPIRY_CHECK_S: Final = 1.0
_MAX_BODY: Final = 256 * MIB
"""Maximum size of a request with a function's code; AWS accepts 50 MB."""


@asynccontextmanager
async def serving(
    settings: HostSettings, functions: Sequence[LambdaFunction], scripted: Deliver | None = None
) -> AsyncIterator[LambdaHost]:
    """Run a host for the length of a block.

    Parameters
    ----------
    settings
        Behaviour of the host.
    functions
        Functions installed from the beginning.
    scripted
        Replacement of all processes.

    Raises
    ------
    PluginError
        If a library is missing, or this is not Linux.
    UsageError
        If it cannot listen.
    """
    allow_open_files(settings.concurrency * _FILES_EACH + _SPARE_FILES)
    with tempfile.TemporaryDirectory(prefix="sbench-lambda-") as scratch:
        token = secrets.token_urlsafe(24)
        runtime_api = RuntimeApi()
        if scripted is None:
            make_runtime(Path(scratch, PACKAGES))
            await runtime_api.start()
        shared = Shared(
            settings=settings,
            scratch=Path(scratch),
            logs=settings.logs or Path(scratch, "logs"),
            runtime_api=runtime_api,
            limits=EnvironmentLimits(
                memory=settings.limit_memory and scripted is None, cpu=settings.limit_cpu
            ),
            counters=HostCounters(),
        )
        host = LambdaHost(settings, shared, scripted)
        for function in functions:
            host.install(function)
        admin = AdminApi(host)
        layers = Layers(settings.region, Path(scratch, "layers"))
        control = ControlApi(host, layers, Path(scratch))
        apis = (InvokeApi(host), control, layers, admin)
        routes = [route for api in apis for route in api.routes]
        runner = await _listen(settings.port, token, routes)
        host.url = "http://{}:{}/{}".format(*runner.addresses[0], token)
        sweeping = asyncio.create_task(_drop_expired(host))
        try:
            yield host
        finally:
            sweeping.cancel()
            await runner.cleanup()
            await admin.stop()
            await host.stop()
            await runtime_api.stop()


def _guard(token: str) -> Middleware:
    """Return the middleware that checks callers, and formats errors like Lambda."""

    @web.middleware
    async def respond(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            _check_caller(request, token)
            return await handler(request)
        except ApiError as exc:
            return exc.response()
        except ConnectionError:
            # The client disconnected during its request, so this response is not read.
            return reply(400, {"Message": "the request is incomplete"})
        except web.HTTPException as exc:
            kind = {"x-amzn-ErrorType": "UnknownOperation"}
            return reply(exc.status, {"Message": exc.reason}, kind)

    return respond


def _check_caller(request: web.Request, token: str) -> None:
    if is_page(request):
        raise ApiError(403, "AccessDeniedException", "this host rejects requests from web pages")
    given = request.path.partition("/")[2].partition("/")[0]
    if not secrets.compare_digest(given.encode(), token.encode()):
        message = (
            "the token is missing: set AWS_ENDPOINT_URL_LAMBDA to the URL that the host prints"
        )
        raise ApiError(403, "AccessDeniedException", message)


async def _drop_expired(host: LambdaHost) -> None:
    """Drop events that have exceeded the maximum age without any other activity."""
    while True:
        await asyncio.sleep(_EXPIRY_CHECK_S)
        host.events.pump()


async def _listen(port: int, token: str, routes: Iterable[web.RouteDef]) -> web.AppRunner:
    app = web.Application(middlewares=[_guard(token)], client_max_size=_MAX_BODY)
    app.add_routes(
        web.route(route.method, f"/{token}{route.path}", route.handler, **route.kwargs)
        for route in routes
    )
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=3600.0, shutdown_timeout=0.1)
    await runner.setup()
    try:
        listener = OwnListener.from_socket(socket.create_server(("127.0.0.1", port)))
    except OSError as exc:
        await runner.cleanup()
        raise UsageError(f"cannot listen on port {port}: {exc.strerror}") from exc
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    asyncio.get_running_loop().set_exception_handler(report_unless_shortage)
    return runner
