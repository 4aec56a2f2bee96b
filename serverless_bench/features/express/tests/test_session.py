"""Sessions with a directory bucket are renewed in time, by one thread, and again if they end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from itertools import count

import pytest

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.errors import AccessDenied, BadResponse, ServerFault
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange
from serverless_bench.clients.s3_http import S3Response
from serverless_bench.clients.sigv4 import Keys
from serverless_bench.features.express import session
from serverless_bench.features.express.session import Aside, Sessions
from tests.commands.processes import PATIENCE_S
from tests.tables import each_row
from tests.unit.meters import patient_meter

BEGIN_S = 1_700_000_000


class Store:
    """Gives sessions, and has the time that the client reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, lasts_s: int, skew_s: int = 0) -> None:
        self.now_s = float(BEGIN_S)
        self.lasts_s = lasts_s
        self.skew_s = skew_s
        self.numbers = count(1)
        monkeypatch.setattr(session, "wall_ns", lambda: round(self.now_s * NS_PER_S))

    def create(self, exchange: Exchange) -> S3Response:
        assert isinstance(exchange, Aside), "the operation's own exchange knows nothing of it"
        exchange.answered(200, {})
        exchange.moved(1000)
        here_s = self.now_s + self.skew_s
        expiration = utc_stamp(round((here_s + self.lasts_s) * NS_PER_S), separators=True)
        body = (
            '<CreateSessionResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Credentials>'
            f"<SessionToken>token-{next(self.numbers)}</SessionToken>"
            "<SecretAccessKey>secret</SecretAccessKey><AccessKeyId>ASIA</AccessKeyId>"
            f"<Expiration>{expiration}</Expiration></Credentials></CreateSessionResult>"
        )
        return S3Response(200, {"date": formatdate(here_s, usegmt=True)}, body.encode())


def opened(store: Store) -> Sessions:
    return Sessions("us-east-1", "s3.example", store.create)


@each_row(("lasts_s", "renewed_s"), [(300, 225), (2, 1)])
@each_row("skew_s", [0, -3600, 3600])
def test_a_session_is_renewed_before_its_end(
    monkeypatch: pytest.MonkeyPatch, lasts_s: int, renewed_s: int, skew_s: int
) -> None:
    """The renewal depends on the session's duration, not on the clocks of both sides."""
    store = Store(monkeypatch, lasts_s=lasts_s, skew_s=skew_s)
    sessions = opened(store)
    meter = patient_meter()
    assert sessions.keys(meter) == Keys("ASIA", "secret", "token-1")
    assert (meter.bytes, meter.status) == (0, None)
    store.now_s += renewed_s - 0.1
    assert sessions.keys(meter).token == "token-1"
    store.now_s += 0.2
    assert sessions.keys(meter).token == "token-2"


def test_one_thread_renews_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(monkeypatch, lasts_s=300)
    renewing, go_on = threading.Event(), threading.Event()

    def create(exchange: Exchange) -> S3Response:
        made = store.create(exchange)
        if store.now_s > BEGIN_S:
            renewing.set()
            assert go_on.wait(PATIENCE_S)
        return made

    sessions = Sessions("us-east-1", "s3.example", create)
    sessions.keys(patient_meter())
    store.now_s += 230
    with ThreadPoolExecutor(1) as pool:
        renewed = pool.submit(sessions.keys, patient_meter())
        assert renewing.wait(PATIENCE_S)
        assert sessions.keys(patient_meter()).token == "token-1"
        go_on.set()
        assert renewed.result().token == "token-2"


def test_a_session_that_ended_is_worth_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = opened(Store(monkeypatch, lasts_s=300))
    keys = sessions.keys(patient_meter())
    refused = AccessDenied("ExpiredToken: it is over", status=400)
    text = b"<Error><Code>ExpiredToken</Code><Message>it is over</Message></Error>"
    found = sessions.judge("GetObject", text, keys, refused)
    assert isinstance(found, ServerFault)
    assert found.retryable
    assert sessions.keys(patient_meter()).token == "token-2"
    # The user's own keys are not a session, and other errors are unchanged.
    assert sessions.judge("CreateSession", text, keys, refused) is refused
    assert sessions.judge("GetObject", b"", keys, refused) is refused


def test_a_store_that_gives_no_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Store(monkeypatch, lasts_s=300)
    sessions = Sessions("us-east-1", "s3.example", lambda _: S3Response(200, {}, b"<html/>"))
    with pytest.raises(BadResponse, match="no session"):
        sessions.keys(patient_meter())
