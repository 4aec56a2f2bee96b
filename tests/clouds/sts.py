"""A service of roles with sessions that end when a test requires it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.units import NS_PER_S

_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>token</SessionToken><Expiration>{end}</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn>
<AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser></AssumeRoleResult>
<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleResponse>"""


@dataclass
class Sts:
    """Gives the same keys to every caller, and records the MFA codes that it receives."""

    key: str
    secret: str
    lives_s: list[float]
    """Lifetimes of consecutive sessions; the last number applies to all later ones."""
    url: str = ""
    codes: list[str] = field(default_factory=list)

    def answer(self, form: dict[str, str]) -> str:
        lives_s = self.lives_s[min(len(self.codes), len(self.lives_s) - 1)]
        self.codes.append(form["TokenCode"])
        end = utc_stamp(wall_ns() + round(lives_s * NS_PER_S), separators=True)
        return _ANSWER.format(key=self.key, secret=self.secret, end=end)


@contextmanager
def sts(key: str, secret: str, *lives_s: float) -> Iterator[Sts]:
    """Serve for the length of a block."""
    service = Sts(key, secret, list(lives_s))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answer = service.answer(dict(parse_qsl(body))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
