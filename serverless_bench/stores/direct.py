"""HTTP requests to servers on this machine, which bypass proxies."""

import ssl
import urllib.request
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from serverless_bench.base.callers import same_user


def open_direct(url: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> HTTPResponse:
    """Return the response to a GET request; the caller has to close it."""
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)]
    return cast("HTTPResponse", urllib.request.build_opener(*handlers).open(url, timeout=timeout_s))


def answers_as_own(url: str, timeout_s: float) -> bool:
    """Return whether a process of this user responds at an address, with any status.

    A process of another user may have taken a free port before the store could use it.
    """
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)) as line:
        try:
            line.request("GET", "/")
            end = line.sock
            # The owner is known only after the connection has been accepted.
            line.getresponse().close()
            return same_user(end.getpeername(), end.getsockname())
        except (OSError, HTTPException):
            return False
