"""HTTP to servers on this machine, which never goes through a proxy."""

import urllib.request
from http.client import HTTPResponse
from typing import cast


def open_direct(url: str, timeout_s: float) -> HTTPResponse:
    """Return the response to a GET; close it."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return cast("HTTPResponse", direct.open(url, timeout=timeout_s))
