"""The head of an HTTP/1.1 response, and the length of its body (RFC 9112)."""

import re
from typing import Final

from serverless_bench.base.errors import BadResponse
from serverless_bench.base.units import whole_number

END_OF_HEAD: Final = b"\r\n\r\n"
_CLOSE: Final = "close"
_EMPTY: Final = frozenset({204, 304})
_STATUS_LINE: Final = re.compile(r"(HTTP/1\.[0-9]) ([1-5][0-9]{2})(?: .*)?", re.DOTALL)
_SWITCHING: Final = 101
"""Status of a switch to another protocol; the client supports none."""


class Response:
    """The head of a response.

    Parameters
    ----------
    data
        The bytes before the empty line.
    method
        HTTP method of the request: responses to HEAD have no body.

    Raises
    ------
    BadResponse
        If the data is not a valid HTTP/1 head.
    """

    __slots__ = ("chunked", "headers", "is_interim", "length", "status", "will_close")

    def __init__(self, data: bytes | bytearray, method: str) -> None:
        first, *lines = data.decode("latin-1").split("\r\n")
        status_line = _STATUS_LINE.fullmatch(first)
        if status_line is None or (status := int(status_line[2])) == _SWITCHING:
            raise BadResponse(f"the response is not HTTP/1: {first[:100]!r}")
        self.status = status
        self.headers: dict[str, str] = {}
        """Headers by name in lower case."""
        headers = self.headers
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadResponse("a line of the head is not a header", status=self.status)
            name = name.lower()
            if name in headers:
                # Repeated headers are combined (RFC 9110, section 5.3).
                value = f"{headers[name]}, {value.strip()}"
            headers[name] = value.strip()
        self.is_interim = self.status < 200
        """Whether the final response follows later, as after 100 Continue."""
        has_body = not (method == "HEAD" or self.status in _EMPTY or self.is_interim)
        self.chunked = has_body and headers.get("transfer-encoding", "").lower().endswith("chunked")
        self.length = self._length() if has_body else 0
        """Bytes of the body; None if it extends to the end of the connection or is chunked."""
        close = headers.get("connection", _CLOSE if status_line[1] == "HTTP/1.0" else "")
        self.will_close = close.lower() == _CLOSE or (self.length is None and not self.chunked)

    def _length(self) -> int | None:
        text = self.headers.get("content-length")
        if self.chunked or text is None:
            return None
        if (length := whole_number(text)) is None:
            raise BadResponse(f"Content-Length is {text[:100]!r}", status=self.status)
        return length
