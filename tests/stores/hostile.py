"""S3 servers with one fault each, by name: possible answers of a broken or a hostile store.

``WRONGS`` answer any request, ``WRONG_LISTS`` a listing. Endless answers continue until the
client hangs up or the test is over.
"""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count, repeat
from typing import Final, Self
from urllib.parse import parse_qs, quote, urlsplit

from tests.stores.faulty import Answer, Exchange, FaultServer

PAUSE_S: Final = 0.04
"""Pause between slow bytes: less than a client's tick, so that every wait has a byte."""
_HEAD: Final = b"HTTP/1.1 200 OK\r\n"
_LAUGHS: Final = b"".join(
    b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 12)
)
BOMB: Final = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY l0 "laugh">' + _LAUGHS + b"]>"
    b"<Error><Code>&l11;</Code><Message>&l11;</Message></Error>"
)
EXTERNAL: Final = (
    b'<?xml version="1.0"?><!DOCTYPE e [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    b"<Error><Code>SlowDown</Code><Message>&e;</Message></Error>"
)
DEEP: Final = b"<a>" * 300_000
LATE_ERROR: Final = b"<Error><Code>InternalError</Code><Message>late</Message></Error>"


def sends(data: bytes) -> Answer:
    """Read the request, and answer with these bytes."""

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        exchange.connection.sendall(data)
        return False

    return answer


def sends_on(start: bytes, piece: bytes, *, pause_s: float = 0.0) -> Answer:
    """Answer with ``start``, and with ``piece`` again and again."""

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        exchange.connection.sendall(start)
        while not exchange.over.wait(pause_s) if pause_s else not exchange.over.is_set():
            exchange.connection.sendall(piece)
        return False

    return answer


def says(status: int, body: bytes = b"", **headers: str) -> Answer:
    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        exchange.say(status, b"" if exchange.method == "HEAD" else body, named)
        return "Connection" not in named

    return answer


def serves(change: Callable[[bytes], bytes] = bytes, **headers: str) -> Answer:
    """Answer a get with the object's bytes, changed, and anything else with success."""

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if exchange.method != "GET" or "?" in exchange.path:
            exchange.say(200, b"", {"ETag": '"etag"', **named})
            return True
        data = exchange.content()
        first, last = _range(exchange, len(data))
        part = data[first : last + 1]
        where = f"bytes {first}-{last}/{len(data)}"
        ranged = {"Content-Range": where} if "range" in exchange.headers else {}
        named = {"Content-Length": str(len(part)), "ETag": '"etag"', **ranged, **named}
        exchange.say(206 if ranged else 200, change(part), named)
        return len(change(part)) == len(part)

    return answer


def _range(exchange: Exchange, size: int) -> tuple[int, int]:
    asked = exchange.headers.get("range", "").removeprefix("bytes=")
    first, _, last = asked.partition("-")
    return int(first or 0), min(int(last or size), size - 1)


def silent(exchange: Exchange) -> bool:
    """Read the request, and send nothing."""
    exchange.drain()
    exchange.over.wait()
    return False


def deaf(exchange: Exchange) -> bool:
    """Read nothing, and send nothing."""
    exchange.over.wait()
    return False


def resets(data: bytes = b"", *, drains: bool = True) -> Answer:
    """End the connection with RST behind these bytes."""

    def answer(exchange: Exchange) -> bool:
        if drains:
            exchange.drain()
        exchange.connection.sendall(data)
        return exchange.reset()

    return answer


def answers_early(exchange: Exchange) -> bool:
    """Report success before the body has arrived, and hang up."""
    exchange.say(200, b"", {"ETag": '"etag"', "Connection": "close"})
    return exchange.reset()


def redirects_to_itself(exchange: Exchange) -> bool:
    exchange.drain()
    host = exchange.headers.get("host", "")
    exchange.say(307, b"", {"Location": f"http://{host}{exchange.path}"})
    return True


def bomb_of_gzip(exchange: Exchange) -> bool:
    exchange.drain()
    bomb = gzip.compress(bytes(1 << 28))
    exchange.say(500, bomb, {"Content-Encoding": "gzip"})
    return True


def _length(text: str) -> Answer:
    return sends(_HEAD + f"Content-Length: {text}\r\n\r\n".encode("latin-1") + bytes(64))


_CHUNKED: Final = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

WRONGS: Final[Mapping[str, Answer]] = {
    # Heads
    "headers without end": sends_on(_HEAD, b"X-More: and more\r\n"),
    "a header line without end": sends_on(_HEAD + b"X-Long: ", b"x" * 4096),
    "a head that drips": sends_on(_HEAD + b"X-Slow: ", b"x", pause_s=PAUSE_S),
    "100 Continue for ever": sends_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 64),
    "100 Continue now and then": sends_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause_s=PAUSE_S),
    "103 Early Hints for ever": sends_on(
        b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 64
    ),
    "101 Switching Protocols": sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
    "no status": sends(b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"),
    "a status in superscript": sends(
        "HTTP/1.1 ²²² OK\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
    ),
    "status 000": sends(b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
    "status 999": sends(b"HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
    "HTTP/0.9": sends(b"<html>hello</html>"),
    "another protocol": sends(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    "bytes without end": sends_on(b"", b"\xff\x00" * 2048),
    "HTTP/2": sends(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18)),
    # Lengths
    "a negative length": _length("-1"),
    "a length of 2**60": sends_on(_HEAD + b"Content-Length: %d\r\n\r\n" % 2**60, bytes(65536)),
    "a length of 2**50": sends_on(_HEAD + b"Content-Length: %d\r\n\r\n" % 2**50, bytes(65536)),
    "a length of 5,000 digits": _length("9" * 5000),
    "a length in superscript": _length("²"),
    "two lengths": sends(_HEAD + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"),
    "a body that ends early": sends(_HEAD + b"Content-Length: 4096\r\n\r\n" + bytes(100)),
    "a body without end": sends_on(_HEAD + b"\r\n", bytes(65536)),
    "a body that drips": sends_on(_HEAD + b"Content-Length: 4096\r\n\r\n", b"x", pause_s=PAUSE_S),
    # Chunks
    "chunks without end": sends_on(_CHUNKED, b"4\r\nabcd\r\n" * 512),
    "a chunk of 2**60": sends_on(_CHUNKED + b"1000000000000000\r\n", bytes(65536)),
    "a chunk of less than nothing": sends_on(_CHUNKED + b"-5\r\n", b"abc\r\n"),
    "a chunk of no number": sends(_CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"),
    "a chunk line without end": sends_on(_CHUNKED + b"4;", b"x" * 4096),
    "trailers without end": sends_on(_CHUNKED + b"0\r\n", b"X-More: 1\r\n" * 64),
    "chunks that drip": sends_on(_CHUNKED, b"1\r\nx\r\n", pause_s=PAUSE_S),
    # Errors
    "an error text without end": sends_on(
        b"HTTP/1.1 500 Oh\r\nContent-Length: 1099511627776\r\n\r\n<Error><Message>", b"x" * 65536
    ),
    "an error text that drips": sends_on(
        b"HTTP/1.1 403 No\r\nContent-Length: 100000\r\n\r\n<Error>", b"x", pause_s=PAUSE_S
    ),
    "an error in chunks without end": sends_on(
        b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nabcd\r\n" * 512
    ),
    "a billion laughs": says(400, BOMB),
    "an external entity": says(503, EXTERNAL),
    "XML a million deep": says(400, DEEP),
    "no UTF-8": says(400, b"<Error><Code>\xff\xfe\x80</Code><Message>\xc3\x28</Message></Error>"),
    "an encoding that is none": says(400, b'<?xml version="1.0" encoding="none"?><Error/>'),
    "escapes in an error": says(
        400, b"<Error><Code>A&#10;B</Code><Message>\x1b[2Jx</Message></Error>"
    ),
    "a bomb of gzip": bomb_of_gzip,
    "Retry-After in superscript": says(503, b"", Retry_After="²"),
    # Redirects
    "a redirect to itself": redirects_to_itself,
    "a redirect to nowhere": says(301),
    "a redirect to no URL": says(307, b"", Location="http://[::1"),
    "a redirect to no host": says(
        301, b"<Error><Code>PermanentRedirect</Code><Endpoint>[::1</Endpoint></Error>"
    ),
    "a redirect to port 99999": says(307, b"", Location="http://127.0.0.1:99999/"),
    # Ends
    "silence": silent,
    "a store that takes nothing": deaf,
    "a reset at once": resets(drains=False),
    "a reset behind the request": resets(),
    "a reset in the head": resets(_HEAD + b"Content-Le"),
    "a reset in the body": resets(_HEAD + b"Content-Length: 4096\r\n\r\n" + bytes(1000)),
    "a close in the head": sends(_HEAD + b"Content-Le"),
    # False successes
    "an error inside of 200": says(200, LATE_ERROR),
    "half an error inside of 200": says(200, LATE_ERROR[:30]),
    "a page of somebody else": says(200, b"<html><body>Please log in</body></html>"),
    "a bomb inside of 200": says(200, BOMB),
}
"""Answers to any request of which none may count as success."""

HARMLESS: Final[Mapping[str, Answer]] = {
    "a header without a colon": sends(_HEAD + b"nothing\r\nContent-Length: 0\r\n\r\n"),
    "a date of 1970": serves(Date="Thu, 01 Jan 1970 00:00:00 GMT"),
    "no date": serves(Date=""),
    "a date of the year 99999": serves(Date="Mon, 01 Jan 99999 00:00:00 GMT"),
    "a date that is none": serves(Date="9" * 3000),
    "an identifier of 3,000 characters": serves(x_amz_request_id="\x85" * 3000),
    "another entity tag": serves(ETag='"\xff' + "0" * 3000 + '"'),
    "a body that goes on": serves(lambda part: part + bytes(5000)),
    "204 with a body": says(204, b"surplus"),
    "success before the body": answers_early,
}
"""Answers that may count as success where all bytes came, and may fail as well."""


def lists_again(exchange: Exchange, prefix: str) -> tuple[list[str], str, bool]:
    del exchange
    return [f"{prefix}{number:06}" for number in range(1000)], "again", True


def _pages() -> Callable[[Exchange, str], tuple[list[str], str, bool]]:
    numbers = count()

    def page(exchange: Exchange, prefix: str) -> tuple[list[str], str, bool]:
        del exchange
        number = next(numbers)
        return [f"{prefix}{number:09}-{key:03}" for key in range(1000)], f"token-{number}", True

    return page


def lists_nothing(exchange: Exchange, prefix: str) -> tuple[list[str], str, bool]:
    del exchange, prefix
    return [], "more", True


def lists_elsewhere(exchange: Exchange, prefix: str) -> tuple[list[str], str, bool]:
    del exchange, prefix
    return ["../../etc/passwd", "/etc/passwd", "a\nb", "\x1b]0;x\x07"], "", False


def lists_odd_keys(exchange: Exchange, prefix: str) -> tuple[list[str], str, bool]:
    del exchange
    odd = ("a\nb", "\x1b]0;owned\x07", "/etc/passwd", "../x", "\x85", "é\u2028", "0" * 1024)
    return [prefix + key for key in odd], "", False


Page = Callable[[Exchange, str], tuple[list[str], str, bool]]


def lists(page: Page) -> Answer:
    """Answer with the result of ``page``: keys, a token, and whether there are more."""

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        query = parse_qs(urlsplit(exchange.path).query, keep_blank_values=True)
        keys, token, more = page(exchange, query.get("prefix", [""])[0])
        kind = "ListMultipartUploads" if "uploads" in query else "ListBucket"
        name = "Upload" if "uploads" in query else "Contents"
        rows = "".join(
            f"<{name}><Key>{quote(key, safe='/')}</Key><UploadId>u</UploadId>"
            f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>e</ETag>"
            f"<Size>1</Size><StorageClass>STANDARD</StorageClass></{name}>"
            for key in keys
        )
        last = quote(keys[-1]) if keys else ""
        ends = (
            f"<NextContinuationToken>{token}</NextContinuationToken>"
            f"<NextKeyMarker>{last}</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"
        )
        about = f"<KeyCount>{len(keys)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        text = (
            f'<{kind}Result xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>'
            f"<EncodingType>url</EncodingType>{about}{rows}{ends if more else ''}</{kind}Result>"
        )
        exchange.say(200, text.encode())
        return True

    return answer


WRONG_LISTS: Final[Mapping[str, Answer]] = {
    "an empty page that goes on": lists(lists_nothing),
    "keys of elsewhere": lists(lists_elsewhere),
    "two million elements": says(200, b"<ListBucketResult>" + b"<Key/>" * 1_300_000),
    "a listing of nothing": says(200),
    "a listing cut short": says(200, b"<ListBucketResult><Contents><Key>a</Key></Cont"),
    "another document": says(200, b"<DeleteResult><Key>a</Key></DeleteResult>"),
}
"""Answers to a listing of which none may count as success."""


def endless_lists() -> Mapping[str, Answer]:
    """Return new endless listings; one counts."""
    return {
        "the same page again": lists(lists_again),
        "pages without end": lists(_pages()),
        "empty pages": lists(lists_nothing),
    }


def hostile(answer: Answer) -> FaultServer:
    """Return a server that answers every request so."""
    return FaultServer(repeat(answer))


def sometimes(wrong: Answer, upstream: str, when: Callable[[Exchange], bool]) -> Answer:
    """Answer wrongly on request, and otherwise like the store ``upstream``."""

    def answer(exchange: Exchange) -> bool:
        return wrong(exchange) if when(exchange) else forward(exchange, upstream)

    return answer


def forward(exchange: Exchange, upstream: str) -> bool:
    """Have a store answer."""
    parts = urlsplit(upstream)
    headers = {**exchange.headers, "connection": "close"}
    headers.pop("expect", None)
    if "expect" in exchange.headers:
        exchange.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    head = [f"{exchange.method} {exchange.path} HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection((parts.hostname or "", parts.port or 80)) as store:
        store.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n")
        for piece in _body(exchange):
            store.sendall(piece)
        while data := store.recv(1 << 16):
            exchange.connection.sendall(data)
    return False


def _body(exchange: Exchange) -> Iterator[bytes]:
    left = int(exchange.headers.get("content-length", 0)) - len(exchange.body_start)
    yield exchange.body_start
    with suppress(OSError):
        while left > 0 and (piece := exchange.connection.recv(min(left, 1 << 16))):
            left -= len(piece)
            yield piece


class Drips:
    """A server that sends ``start`` to every client, and then a byte now and then.

    It reads nothing: a client with TLS gets half a record of a handshake that never ends.
    """

    def __init__(self, start: bytes) -> None:
        self._start = start

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            with connection:
                connection.sendall(self._start)
                while not self._over.wait(PAUSE_S):
                    connection.sendall(b"\0")
