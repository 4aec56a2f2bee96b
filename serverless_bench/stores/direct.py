"""HTTP to servers on this machine, which never goes through a proxy."""

import ssl
import urllib.request
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from serverless_bench.process.callers import same_user


def open_direct(url: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> HTTPResponse:
    """Return the response to a GET; close it."""
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)]
    direct = urllib.request.build_opener(*handlers)
    return cast("HTTPResponse", direct.open(url, timeout=timeout_s))


def answers_as_own(url: str, timeout_s: float) -> bool:
    """Tell whether a process of this user's answers at an address, whatever it says.

    Another user's may have taken a port between the moment when it was free and its use.
    """
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)) as line:
        try:
            line.request("GET", "/")
            end = line.sock
            # Whose it is shows when it has taken the connection.
            line.getresponse().close()
            return same_user(end.getpeername(), end.getsockname())
        except (OSError, HTTPException):
            return False
