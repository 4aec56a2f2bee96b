"""The loopback store answers processes of its user, and no web page that a browser shows."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.keys import object_key
from tests.commands.other_user import CLOSED, Stranger
from tests.stores.servers import DIRECT, loopback

KEY = object_key(prefix="sbench/", run_id="x", index=0, launch=0, number=0, size=64)
ASKED = [
    ("GET", f"/any/{KEY}"),
    ("PUT", f"/any/{KEY}"),
    ("DELETE", f"/any/{KEY}"),
    ("GET", "/any?list-type=2"),
    ("GET", "/-/statistics"),
    ("PUT", "/any/claims/0"),
    ("POST", "/any?delete"),
    ("HEAD", f"/any/{KEY}"),
]


def test_another_user_can_neither_read_nor_write(tmp_path: Path, nobody: Stranger) -> None:
    with loopback(log=tmp_path / "log") as store:
        for method, path in ASKED:
            status, _ = nobody.request(f"{store.endpoint_url}{path}", method, "planted")
            assert status in CLOSED
        with DIRECT.open(f"{store.endpoint_url}/any/{KEY}") as answer:
            assert len(answer.read()) == 64
    counted = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert (counted["requests"], counted["connections"]) == ({"get": 1}, 1)


def test_it_does_over_ipv6_too(nobody: Stranger) -> None:
    with serving(LoopbackSettings(host="::1")) as store:
        assert nobody.request(f"{store.endpoint_url}/any/{KEY}")[0] in CLOSED
        with DIRECT.open(f"{store.endpoint_url}/any/{KEY}") as answer:
            assert len(answer.read()) == 64


@pytest.mark.parametrize(
    "header",
    [
        ("Host", "rebound.example:9000"),
        ("Host", "127.0.0.1.example"),
        ("Origin", "http://127.0.0.1:9000"),
        ("Origin", "null"),
    ],
)
def test_a_web_page_is_refused(header: tuple[str, str]) -> None:
    with serving() as store:
        for method, path in ASKED:
            asked = urllib.request.Request(f"{store.endpoint_url}{path}", method=method)
            asked.add_header(*header)
            with pytest.raises(urllib.error.HTTPError) as refused:
                DIRECT.open(asked)
            with refused.value as answer:
                assert answer.status == 403
                assert method == "HEAD" or b"from web pages" in answer.read()
        assert store.state.statistics()["requests"] == {}


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "any.localhost", "[::1]"])
def test_it_is_called_by_its_own_names(name: str) -> None:
    with serving() as store:
        asked = urllib.request.Request(f"{store.endpoint_url}/any/{KEY}")
        asked.add_header("Host", f"{name}:9000")
        with DIRECT.open(asked) as answer:
            assert answer.status == 200
