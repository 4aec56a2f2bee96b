"""HTTP to servers on this machine, which never goes through a proxy."""

import ssl
import urllib.request
from http.client import HTTPResponse
from typing import cast


def open_direct(url: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> HTTPResponse:
    """Return the response to a GET; close it."""
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)]
    direct = urllib.request.build_opener(*handlers)
    return cast("HTTPResponse", direct.open(url, timeout=timeout_s))
