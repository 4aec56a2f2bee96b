"""A proxy in front of a correct store, which plants a fault in requests or answers.

A fault is a function of a call and of the function that forwards a call, like a filter of a web
framework; it may keep state between calls, and is told apart by its guarantee and its name.
"""

import http.client
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from serverless_bench.base.clock import http_date_s, monotonic_ns
from serverless_bench.features.loopback.s3 import http_date


class DroppedError(Exception):
    """The connection ends without an answer."""


@dataclass(frozen=True, kw_only=True)
class Call:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool = True
    """Whether all bytes of the body have come."""

    @property
    def asked(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def is_condition(self) -> bool:
        return bool({"if-match", "if-none-match"} & self.headers.keys())

    def without(self, *names: str) -> "Call":
        headers = {name: value for name, value in self.headers.items() if name not in names}
        return replace(self, headers=headers)

    def unconditional(self) -> "Call":
        return self.without("if-match", "if-none-match")

    def is_write(self) -> bool:
        return self.method == "PUT" and not self.query

    def is_get(self) -> bool:
        return self.method == "GET" and not self.asked

    def is_list(self) -> bool:
        return self.method == "GET" and "list-type" in self.asked


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Send = Callable[[Call], Reply]
Fault = Callable[[Call, Send], Reply]
REFUSED: Final = Reply(status=412, body=b"<Error><Code>PreconditionFailed</Code></Error>")


def error(status: int, code: str, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers=named, body=f"<Error><Code>{code}</Code></Error>".encode())


def put(call: Call, body: bytes) -> Call:
    """Return an unconditional PUT of other bytes to the same key."""
    return replace(call.unconditional(), method="PUT", query="", body=body)


def get(call: Call) -> Call:
    return replace(call.unconditional(), method="GET", query="", body=b"")


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def __init__(self, upstream: str, fault: Fault) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.fault = fault
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that hang up, as they do on purpose."""


_HOP: Final = frozenset({"content-length", "connection", "transfer-encoding"})


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    _line: http.client.HTTPConnection | None = None

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def finish(self) -> None:
        super().finish()
        if self._line is not None:
            self._line.close()

    def _send(self, call: Call) -> Reply:
        line = self._line = self._line or http.client.HTTPConnection(self.server.upstream)
        target = f"{call.path}?{call.query}" if call.query else call.path
        line.putrequest(call.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in {**call.headers, "content-length": str(len(call.body))}.items():
            line.putheader(name, value)
        line.endheaders(call.body)
        answer = line.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(status=answer.status, headers=headers, body=answer.read())

    def _reply(self) -> Reply | None:
        """Return the reply to the next request; None if there is to be none."""
        size = int(self.headers.get("content-length") or 0)
        path, _, query = self.path.partition("?")
        body = self.rfile.read(size)
        call = Call(
            method=self.command,
            path=path,
            query=query,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            is_whole=len(body) == size,
        )
        if not call.is_whole and self.server.fault is not stores_what_came:
            return None
        try:
            return self.server.fault(call, self._send)
        except DroppedError:
            return None

    def serve(self) -> None:
        reply = self._reply()
        if reply is None:
            self.close_connection = True
            return
        length = reply.headers.get("content-length") if self.command == "HEAD" else None
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if name not in _HOP:
                self.send_header(name, value)
        self.send_header("content-length", length or str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD" and reply.status != 304:
            self.wfile.write(reply.body)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = serve  # noqa: N815 - stdlib's names


@contextmanager
def planted(upstream: str, fault: Fault) -> Iterator[str]:
    """Yield the URL of a proxy to a store."""
    with _Server(upstream, fault) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def nothing(call: Call, send: Send) -> Reply:
    """Plant no fault."""
    return send(call)


# Conditional writes


def loses_updates(every: int, header: str) -> Fault:
    """Do every so many writes that are to be refused."""
    numbers = count(1)

    def fault(call: Call, send: Send) -> Reply:
        reply = send(call)
        is_one = call.is_write() and header in call.headers and reply.status == 412
        return send(call.unconditional()) if is_one and next(numbers) % every == 0 else reply

    return fault


def does_refused_writes(call: Call, send: Send) -> Reply:
    reply = send(call)
    if call.is_write() and reply.status == 412:
        send(call.unconditional())
    return reply


def refuses_all(call: Call, send: Send) -> Reply:
    return REFUSED if call.is_write() and "if-match" in call.headers else send(call)


def forgets_conditions(method: str, header: str, part: str = "") -> Fault:
    """Ignore a condition of requests with a part in their headers or query."""

    def fault(call: Call, send: Send) -> Reply:
        is_one = call.method == method and header in call.headers
        is_one &= part in call.query or part in call.headers
        return send(call.without(header) if is_one else call)

    return fault


def doubles_retries() -> Fault:
    """Do a write again if the same bytes come again, like a gateway that saw it before."""
    seen = set[tuple[str, bytes]]()

    def fault(call: Call, send: Send) -> Reply:
        if not call.is_write() or not call.is_condition:
            return send(call)
        is_again = (call.path, call.body) in seen
        seen.add((call.path, call.body))
        return send(call.unconditional() if is_again else call)

    return fault


def refuses_what_it_dropped() -> Fault:
    """Drop the first write to a key, and then say that the object is there."""
    seen = set[str]()

    def fault(call: Call, send: Send) -> Reply:
        if not call.is_write() or call.headers.get("if-none-match") != "*":
            return send(call)
        if call.path in seen:
            return REFUSED
        seen.add(call.path)
        raise DroppedError

    return fault


def completes_again() -> Fault:
    """Repeat an upload that was completed before, with its bytes."""
    done: dict[str, bytes] = {}

    def fault(call: Call, send: Send) -> Reply:
        if call.method != "POST" or "uploadId" not in call.asked:
            return send(call)
        if call.query in done:
            send(put(call, done[call.query]))
            return Reply(status=200, body=b"<CompleteMultipartUploadResult/>")
        reply = send(call)
        if reply.status == 200:
            done[call.query] = send(get(call)).body
        return reply

    return fault


def stores_what_came(call: Call, send: Send) -> Reply:
    reply = send(call)
    if not call.is_whole:
        raise DroppedError
    return reply


# Reads


def remembers(which: Callable[[Call, Reply], bool], times: int) -> Fault:
    """Repeat an answer to a GET for the next few GETs of the key."""
    kept: dict[str, tuple[Reply, int]] = {}

    def fault(call: Call, send: Send) -> Reply:
        if not call.is_get() or "range" in call.headers:
            return send(call)
        reply, left = kept.get(call.path, (None, 0))
        if reply is not None and left:
            kept[call.path] = reply, left - 1
            return reply
        reply = send(call)
        if which(call, reply):
            kept[call.path] = reply, times
        return reply

    return fault


def tears_reads() -> Fault:
    """Answer a GET after an overwrite with halves of two versions."""
    before: dict[str, bytes] = {}

    def fault(call: Call, send: Send) -> Reply:
        if call.is_write():
            old = send(get(call))
            if old.status == 200:
                before[call.path] = old.body
            return send(call)
        reply = send(call)
        if call.is_get() and (old_body := before.pop(call.path, None)) is not None:
            half = len(reply.body) // 2
            return replace(reply, body=old_body[:half] + reply.body[half:])
        return reply

    return fault


def keeps_tags(call: Call, send: Send) -> Reply:
    reply = send(call)
    if call.method != "GET" or "etag" not in reply.headers:
        return reply
    return replace(reply, headers={**reply.headers, "etag": '"the same"'})


# Listings

_ENTRY: Final = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
_KEY: Final = re.compile(rb"<Key>(.*?)</Key>")


def entries(reply: Reply) -> list[bytes]:
    return _ENTRY.findall(reply.body)


def listing(reply: Reply, found: list[bytes]) -> Reply:
    """Return the same page with other entries."""
    rest = _ENTRY.sub(b"", reply.body)
    return replace(
        reply, body=rest.replace(b"</ListBucketResult>", b"".join(found) + b"</ListBucketResult>")
    )


def key_of(entry: bytes) -> bytes:
    found = _KEY.search(entry)
    assert found is not None
    return found[1]


def changes_listings(change: Callable[[Call, list[bytes]], list[bytes]]) -> Fault:
    def fault(call: Call, send: Send) -> Reply:
        reply = send(call)
        return listing(reply, change(call, entries(reply))) if call.is_list() else reply

    return fault


def lists_late(milliseconds: int) -> Fault:
    """Answer a listing with the page of so long ago."""
    history: dict[str, list[tuple[int, Reply]]] = defaultdict(list)

    def fault(call: Call, send: Send) -> Reply:
        folder = call.asked.get("prefix", call.path.rpartition("/")[0])
        if call.method in {"PUT", "DELETE"} and not call.query:
            bucket, _, prefix = folder.removeprefix("/").partition("/")
            query = f"list-type=2&encoding-type=url&prefix={quote(prefix + '/', safe='')}"
            seen = send(replace(get(call), path=f"/{bucket}", query=query))
            history[f"{prefix}/"].append((monotonic_ns(), seen))
            return send(call)
        if not call.is_list():
            return send(call)
        now_ns = monotonic_ns()
        late = [page for at_ns, page in history[folder] if now_ns - at_ns < milliseconds * 10**6]
        return late[-1] if late else send(call)

    return fault


def lists_deleted() -> Fault:
    """List a deleted object once more."""
    pages: dict[str, Reply] = {}
    stale = set[str]()

    def fault(call: Call, send: Send) -> Reply:
        if call.method == "DELETE":
            stale.update(pages)
        if call.is_list() and call.query in stale:
            stale.discard(call.query)
            return pages[call.query]
        reply = send(call)
        if call.is_list():
            pages[call.query] = reply
        return reply

    return fault


def pages_by_offset(call: Call, send: Send) -> Reply:
    """Use the number of keys so far as the token of the next page."""
    if not call.is_list() or "max-keys" not in call.asked:
        return send(call)
    token, size = int(call.asked.get("continuation-token", 0)), int(call.asked["max-keys"])
    query = re.sub(r"&?(continuation-token|max-keys)=[^&]*", "", call.query).lstrip("&")
    reply = send(replace(call, query=query))
    found = entries(reply)
    page = listing(reply, found[token : token + size])
    if token + size >= len(found):
        return page
    more = f"<NextContinuationToken>{token + size}</NextContinuationToken></ListBucketResult>"
    return replace(page, body=page.body.replace(b"</ListBucketResult>", more.encode()))


def first_of_later_pages(change: Callable[[list[bytes]], list[bytes]]) -> Fault:
    return changes_listings(
        lambda call, found: change(found) if "continuation-token" in call.asked else found
    )


def starts_with(call: Call, send: Send) -> Reply:
    """List the key itself that a listing is to start after."""
    after = call.asked.get("start-after", "")
    if not call.is_list() or not after:
        return send(call)
    earlier = after[:-1] + chr(ord(after[-1]) - 1) + "\U0010ffff"
    query = call.query.replace(quote(after, safe=""), quote(earlier, safe=""))
    return send(replace(call, query=query))


def never_ends(call: Call, send: Send) -> Reply:
    """Answer all pages like the first."""
    query = re.sub(r"&?continuation-token=[^&]*", "", call.query).lstrip("&")
    return send(replace(call, query=query) if call.is_list() else call)


# Ranges


def changes_ranges(pattern: str, change: Callable[[re.Match[str]], str]) -> Fault:
    """Read another range than a request asks for, and name the one asked for."""

    def fault(call: Call, send: Send) -> Reply:
        asked = re.fullmatch(pattern, call.headers.get("range", ""))
        if asked is None:
            return send(call)
        right = send(call)
        wrong = send(replace(call, headers={**call.headers, "range": change(asked)}))
        return replace(wrong, headers={**wrong.headers, **right.headers}) if right.body else wrong

    return fault


def ignores_ends(call: Call, send: Send) -> Reply:
    """Answer a range beyond the end with the last byte."""
    reply = send(call)
    if reply.status != 416:
        return reply
    return send(replace(call, headers={**call.headers, "range": "bytes=-1"}))


# Uploads in parts


def joins_as_they_come() -> Fault:
    """Combine parts in the order of their arrival."""
    parts: dict[str, list[bytes]] = defaultdict(list)

    def fault(call: Call, send: Send) -> Reply:
        upload = call.asked.get("uploadId", "")
        if call.method == "PUT" and upload:
            parts[upload].append(call.body)
        reply = send(call)
        if call.method == "POST" and upload and reply.status == 200:
            send(put(call, b"".join(parts[upload])))
        return reply

    return fault


_PART: Final = re.compile(rb"<Part><PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag></Part>")


def sorts_parts(call: Call, send: Send) -> Reply:
    if call.method != "POST" or "uploadId" not in call.asked:
        return send(call)
    found = sorted(_PART.findall(call.body), key=lambda part: int(part[0]))
    rows = (b"<Part><PartNumber>%b</PartNumber><ETag>%b</ETag></Part>" % part for part in found)
    body = b"<CompleteMultipartUpload>" + b"".join(rows) + b"</CompleteMultipartUpload>"
    return send(replace(call, body=body))


def takes_any_parts() -> Fault:
    """Complete an upload with the parts that came, whatever is asked for."""
    tags: dict[str, dict[str, str]] = defaultdict(dict)

    def fault(call: Call, send: Send) -> Reply:
        upload = call.asked.get("uploadId", "")
        if call.method == "POST" and upload:
            rows = (
                f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
                for number, tag in sorted(tags[upload].items(), key=lambda part: int(part[0]))
            )
            body = f"<CompleteMultipartUpload>{''.join(rows)}</CompleteMultipartUpload>"
            return send(replace(call, body=body.encode()))
        reply = send(call)
        if call.method == "PUT" and upload:
            tags[upload][call.asked["partNumber"]] = reply.headers["etag"]
        return reply

    return fault


def shows_parts(call: Call, send: Send) -> Reply:
    if call.method == "PUT" and "uploadId" in call.asked:
        send(put(call, call.body))
    return send(call)


def aborts_late() -> Fault:
    """Leave the part of an aborted upload as an object."""
    parts: dict[str, bytes] = {}

    def fault(call: Call, send: Send) -> Reply:
        upload = call.asked.get("uploadId", "")
        if call.method == "PUT" and upload:
            parts[upload] = call.body
        if call.method == "DELETE" and upload in parts:
            send(put(call, parts[upload]))
        return send(call)

    return fault


def mixes_completions() -> Fault:
    """Leave halves of two uploads of a key that are both completed."""
    done: dict[str, bytes] = {}
    lock = threading.Lock()

    def fault(call: Call, send: Send) -> Reply:
        if call.method != "POST" or "uploadId" not in call.asked:
            return send(call)
        with lock:
            reply = send(call)
            if reply.status == 200:
                now = send(get(call)).body
                before = done.get(call.path, now)
                done[call.path] = now
                if before != now:
                    send(put(call, before[: len(before) // 2] + now[len(now) // 2 :]))
            return reply

    return fault


def acknowledges_aborted() -> Fault:
    """Say that an upload is complete after it was aborted."""
    aborted = set[str]()

    def fault(call: Call, send: Send) -> Reply:
        upload = call.asked.get("uploadId", "")
        if call.method == "DELETE" and upload:
            aborted.add(upload)
        if call.method == "POST" and upload in aborted:
            return Reply(status=200, body=b"<CompleteMultipartUploadResult/>")
        return send(call)

    return fault


# Checksums, copies, deletions, refusals


def drops(*names: str) -> Fault:
    return lambda call, send: send(call.without(*names))


def skips_deletions(call: Call, send: Send) -> Reply:
    """Leave out an object of a request to delete many."""
    rows = re.findall(rb"<Object>.*?</Object>", call.body)
    return send(replace(call, body=call.body.replace(rows[0], b"", 1)) if rows else call)


def deletes_more(call: Call, send: Send) -> Reply:
    """Delete another object whose key begins like a deleted one."""
    keys = re.findall(rb"<Key>(.*?)</Key>", call.body)
    if call.method == "POST" and "delete" in call.asked and keys:
        row = b"<Object><Key>%ba</Key></Object></Delete>" % keys[0]
        call = replace(call, body=call.body.replace(b"</Delete>", row))
    return send(call)


def copies_links() -> Fault:
    """Let a copy follow its source."""
    links: dict[str, str] = {}

    def fault(call: Call, send: Send) -> Reply:
        if source := call.headers.get("x-amz-copy-source"):
            links[call.path] = f"/{source.removeprefix('/')}"
            return send(call)
        return send(replace(call, path=links.get(call.path, call.path)) if call.is_get() else call)

    return fault


def copies_nothing(call: Call, send: Send) -> Reply:
    """Make an empty copy of an object that is not there."""
    reply = send(call)
    if "x-amz-copy-source" in call.headers and reply.status == 404:
        return send(put(call.without("x-amz-copy-source"), b""))
    return reply


def refuses_what_it_did() -> Fault:
    numbers = count(1)

    def fault(call: Call, send: Send) -> Reply:
        reply = send(call)
        is_one = call.is_write() and next(numbers) % 10 == 0
        return error(503, "SlowDown") if is_one else reply

    return fault


def asks_to_wait_for(text: str) -> Fault:
    numbers = count(1)

    def fault(call: Call, send: Send) -> Reply:
        if call.is_write() and next(numbers) % 10 == 0:
            return error(503, "SlowDown", retry_after=text)
        return send(call)

    return fault


# Names and clocks


def renames(change: Callable[[str], str]) -> Fault:
    """Use other keys than the client sends."""
    return lambda call, send: send(replace(call, path=change(call.path)))


def composed(path: str) -> str:
    return quote(normalize("NFC", unquote(path)), safe="/~")


def shifted(header: str, seconds: int) -> Fault:
    """Change a date."""

    def fault(call: Call, send: Send) -> Reply:
        reply = send(call)
        if header not in reply.headers:
            return reply
        value = http_date((http_date_s(reply.headers[header]) or 0) + seconds)
        return replace(reply, headers={**reply.headers, header: value})

    return fault


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A fault and the guarantee that it breaks."""

    guarantee: str
    make: Callable[[], Fault]
    replays: bool = False
    """Whether the proof gives the same answers when it is sent again, to a new store."""


def plain(fault: Fault) -> Callable[[], Fault]:
    return lambda: fault


PLANTS: Final[Mapping[str, Plant]] = {
    "a lost update once in 200": Plant(
        guarantee="replace-put", make=lambda: loses_updates(200, "if-match")
    ),
    "a lost create once in 200": Plant(
        guarantee="create-put", make=lambda: loses_updates(200, "if-none-match")
    ),
    "a refused write is done": Plant(guarantee="replace-put", make=plain(does_refused_writes)),
    "all writes are refused": Plant(guarantee="replace-put", make=plain(refuses_all)),
    "copies ignore If-None-Match": Plant(
        guarantee="create-copy",
        make=lambda: forgets_conditions("PUT", "if-none-match", "x-amz-copy-source"),
    ),
    "copies ignore If-Match": Plant(
        guarantee="replace-copy",
        make=lambda: forgets_conditions("PUT", "if-match", "x-amz-copy-source"),
    ),
    "completions ignore If-None-Match": Plant(
        guarantee="create-multipart",
        make=lambda: forgets_conditions("POST", "if-none-match", "uploadId"),
    ),
    "completions ignore If-Match": Plant(
        guarantee="replace-multipart",
        make=lambda: forgets_conditions("POST", "if-match", "uploadId"),
    ),
    "deletions ignore If-Match": Plant(
        guarantee="delete-if-match",
        make=lambda: forgets_conditions("DELETE", "if-match"),
        replays=True,
    ),
    "a retried create is done twice": Plant(guarantee="lost-create", make=doubles_retries),
    "a retried replace is done twice": Plant(guarantee="lost-replace", make=doubles_retries),
    "a dropped write is refused later": Plant(
        guarantee="lost-create", make=refuses_what_it_dropped
    ),
    "a retried completion overwrites": Plant(guarantee="lost-complete", make=completes_again),
    "half an object is stored": Plant(guarantee="cut-put", make=plain(stores_what_came)),
    "404 is remembered": Plant(
        guarantee="read-new", make=lambda: remembers(lambda _, reply: reply.status == 404, 12)
    ),
    "an old version is remembered": Plant(
        guarantee="read-overwritten",
        make=lambda: remembers(lambda _, reply: reply.status == 200, 12),
    ),
    "a deleted object is remembered": Plant(
        guarantee="read-deleted", make=lambda: remembers(lambda _, reply: reply.status == 200, 12)
    ),
    "reads are torn": Plant(guarantee="read-whole", make=tears_reads),
    "versions share an ETag": Plant(guarantee="read-whole", make=plain(keeps_tags)),
    "reads ignore If-Match": Plant(
        guarantee="read-if-match",
        make=lambda: forgets_conditions("GET", "if-match"),
        replays=True,
    ),
    "reads ignore If-None-Match": Plant(
        guarantee="read-if-match",
        make=lambda: forgets_conditions("GET", "if-none-match"),
        replays=True,
    ),
    "listings are 300 ms late": Plant(guarantee="list-new", make=lambda: lists_late(300)),
    "listings have deleted objects": Plant(guarantee="list-deleted", make=lists_deleted),
    "listings ignore case": Plant(
        guarantee="list-order",
        make=lambda: changes_listings(
            lambda _, found: sorted(found, key=lambda e: key_of(e).lower())
        ),
        replays=True,
    ),
    "a token skips a key": Plant(
        guarantee="list-pages", make=lambda: first_of_later_pages(lambda found: found[1:])
    ),
    "a page repeats a key": Plant(
        guarantee="list-pages", make=lambda: first_of_later_pages(lambda found: found[:1] + found)
    ),
    "a listing starts with the key": Plant(guarantee="list-pages", make=plain(starts_with)),
    "a listing does not end": Plant(guarantee="list-pages", make=plain(never_ends)),
    "tokens are offsets": Plant(guarantee="list-stable", make=plain(pages_by_offset)),
    "a range is one byte longer": Plant(
        guarantee="ranges",
        make=lambda: changes_ranges(
            r"bytes=(\d+)-(\d+)", lambda asked: f"bytes={asked[1]}-{int(asked[2]) + 1}"
        ),
        replays=True,
    ),
    "a range begins one byte late": Plant(
        guarantee="ranges",
        make=lambda: changes_ranges(
            r"bytes=(\d+)-(\d+)", lambda asked: f"bytes={int(asked[1]) + 1}-{asked[2]}"
        ),
        replays=True,
    ),
    "a range of the last bytes begins at 0": Plant(
        guarantee="ranges",
        make=lambda: changes_ranges(r"bytes=-(\d+)", lambda asked: f"bytes=0-{int(asked[1]) - 1}"),
        replays=True,
    ),
    "a range beyond the end has bytes": Plant(
        guarantee="ranges", make=plain(ignores_ends), replays=True
    ),
    "parts are joined as they come": Plant(guarantee="multipart-order", make=joins_as_they_come),
    "parts are sorted": Plant(guarantee="multipart-order", make=plain(sorts_parts)),
    "parts are not compared": Plant(guarantee="multipart-parts", make=takes_any_parts),
    "parts are shown": Plant(guarantee="multipart-hidden", make=plain(shows_parts)),
    "an abort leaves an object": Plant(guarantee="multipart-hidden", make=aborts_late),
    "an aborted upload is acknowledged": Plant(
        guarantee="multipart-hidden", make=acknowledges_aborted
    ),
    "completions are mixed": Plant(guarantee="multipart-race", make=mixes_completions),
    "a wrong Content-MD5 is accepted": Plant(
        guarantee="checksum-md5", make=lambda: drops("content-md5"), replays=True
    ),
    "a wrong checksum is accepted": Plant(
        guarantee="checksum-header",
        make=lambda: drops("x-amz-checksum-crc32", "x-amz-checksum-sha256"),
        replays=True,
    ),
    "a wrong SHA-256 alone is accepted": Plant(
        guarantee="checksum-header", make=lambda: drops("x-amz-checksum-sha256"), replays=True
    ),
    "a wrong signature is accepted": Plant(
        guarantee="checksum-signature", make=lambda: drops("x-amz-content-sha256")
    ),
    "a deletion of many skips an object": Plant(
        guarantee="delete-many", make=plain(skips_deletions), replays=True
    ),
    "a deletion of many takes another": Plant(
        guarantee="delete-many", make=plain(deletes_more), replays=True
    ),
    "a copy is a link": Plant(guarantee="copy", make=copies_links),
    "a copy of nothing is made": Plant(guarantee="copy", make=plain(copies_nothing), replays=True),
    "copies ignore the source's ETag": Plant(
        guarantee="copy", make=lambda: drops("x-amz-copy-source-if-match"), replays=True
    ),
    "a write is done and refused": Plant(guarantee="refusals", make=refuses_what_it_did),
    "Retry-After is no time": Plant(guarantee="refusals", make=lambda: asks_to_wait_for("soon")),
    "a plus is a space": Plant(
        guarantee="keys-escaped",
        make=lambda: renames(lambda path: path.replace("%2B", "%20")),
        replays=True,
    ),
    "empty folders are left out": Plant(
        guarantee="keys-slashes",
        make=lambda: renames(lambda path: re.sub("(?<=.)//+", "/", path)),
        replays=True,
    ),
    "letters are composed": Plant(
        guarantee="keys-unicode", make=lambda: renames(composed), replays=True
    ),
    "long keys are cut": Plant(
        guarantee="keys-long", make=lambda: renames(lambda path: path[:400]), replays=True
    ),
    "Last-Modified has another hour": Plant(
        guarantee="clock", make=lambda: shifted("last-modified", 3600)
    ),
}
"""Faults by name."""
