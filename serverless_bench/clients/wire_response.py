"""The head of an HTTP/1.1 response, and how its body ends (RFC 9112)."""

from collections.abc import Iterable
from typing import Final

from serverless_bench.errors import BadResponse

END_OF_HEAD: Final = b"\r\n\r\n"
_CLOSE: Final = "close"


class Response:
    """The head of a response.

    Parameters
    ----------
    data
        The bytes before the empty line.
    method
        Of the request: a HEAD is answered without a body.

    Raises
    ------
    BadResponse
        If that is no head of HTTP/1.
    """

    __slots__ = ("chunked", "headers", "length", "status", "will_close")

    def __init__(self, data: bytes, method: str) -> None:
        first, *lines = data.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise BadResponse(f"no HTTP/1 comes from there: {first[:100]!r}")
        self.status = int(rest[:3])
        parts = [line.partition(":") for line in lines]
        self.headers = headers = {name.lower(): value.strip() for name, _, value in parts}
        """By name in lower case."""
        if len(headers) < len(parts):
            _join_repeated(headers, parts)
        if "" in [colon for _, colon, _ in parts]:
            raise BadResponse("a line of the head is no header", status=self.status)
        coding = headers.get("transfer-encoding", "").lower()
        empty = method == "HEAD" or self.status in {204, 304} or self.is_interim
        self.chunked = not empty and coding.endswith("chunked")
        self.length = 0 if empty else self._length()
        """Bytes of the body; None if only its end tells."""
        close = headers.get("connection", _CLOSE if version == "HTTP/1.0" else "").lower()
        self.will_close = close == _CLOSE or (self.length is None and not self.chunked)

    @property
    def is_interim(self) -> bool:
        """Whether the answer proper is still to come, as after 100 Continue."""
        return self.status < 200

    def _length(self) -> int | None:
        text = self.headers.get("content-length")
        if self.chunked or text is None:
            return None
        if not text.isdigit():
            raise BadResponse(f"Content-Length is {text[:100]!r}", status=self.status)
        return int(text)


def _join_repeated(headers: dict[str, str], parts: Iterable[tuple[str, str, str]]) -> None:
    """Let headers that come more than once have all their values (RFC 9110, section 5.3)."""
    headers.clear()
    for name, _, value in parts:
        before = headers.get(name.lower())
        headers[name.lower()] = value.strip() if before is None else f"{before}, {value.strip()}"
