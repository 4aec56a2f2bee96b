"""A store with a planted fault breaks the right guarantee, and a correct one breaks none."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.qualify.guarantees import GUARANTEES, chosen
from serverless_bench.features.qualify.measure import measure
from serverless_bench.features.qualify.requests import AskingClient, LostResponse, SentRequest
from serverless_bench.features.qualify.result import CheckedGuarantee, GuaranteeVerdict
from serverless_bench.features.qualify.tests.planted import (
    PLANTS,
    Call,
    Fault,
    Reply,
    Send,
    error,
    forgets_conditions,
    nothing,
    planted,
    remembers,
    shifted,
)
from serverless_bench.features.qualify.trial import Lab
from serverless_bench.job.target import Target, Transfer
from tests.stores.network import certificate
from tests.stores.servers import KEYS

AT_ONCE = {
    "a lost update once in 200",
    "a retried create is done twice",
    "listings are 300 ms late",
    "a token skips a key",
    "a range is one byte longer",
    "a wrong checksum is accepted",
}
"""Faults of the normal run; `make full` has all."""
PATIENCE_S = 300.0


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def store() -> Iterator[str]:
    with serving(LoopbackSettings(strict=True)) as server:
        yield server.endpoint_url


def findings(*urls: str, names: tuple[str, ...] = (), functions: int = 8) -> list[CheckedGuarantee]:
    """Check guarantees of a store, and that nothing is left."""
    targets = [Target(bucket="any", prefix="q/", endpoint_url=url, region="r") for url in urls]
    lab = Lab(targets=targets, functions=functions, ledger=io.StringIO())
    try:
        return measure(lab, chosen(names), budget_s=PATIENCE_S, show=lambda _: None)
    finally:
        assert lab.close() == 0


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in AT_ONCE else pytest.mark.full) for n in PLANTS]
)
def test_a_planted_fault_breaks_its_guarantee(store: str, name: str) -> None:
    plant = PLANTS[name]
    with planted(store, plant.make()) as url:
        [found] = findings(url, names=(plant.guarantee,))
    assert found.verdict is GuaranteeVerdict.UNSAFE, found
    assert found.reason
    assert found.proof
    assert "authorization" not in json.dumps(found.proof).lower()
    if not plant.replays:
        return
    strict = LoopbackSettings(strict=True)
    with serving(strict) as fresh, planted(fresh.endpoint_url, plant.make()) as url:
        assert replayed(url, found.proof) == [
            (request["status"], request["answer"]["bytes"]) for request in found.proof
        ]


def replayed(url: str, proof: Any) -> list[tuple[int | None, int]]:
    """Send the requests of a proof again, one after the other, and return their answers."""
    client = AskingClient(
        Target(bucket="any", endpoint_url=url, region="r"), Transfer(retries=0, timeout=10.0)
    )
    answers = []
    for row in proof:
        path, _, query = row["path"].partition("?")
        size, part = row["body"]["bytes"], row["body"]["repeats"].encode("latin-1")
        request = SentRequest(
            function=0,
            method=row["method"],
            key=row["key"],
            headers=row["headers"],
            body=(part * (size // max(len(part), 1) + 1))[:size],
            lost=row["closed"] and LostResponse(row["closed"]),
        )
        client.ask(request, query, lambda: None)
        assert urlsplit(request.path).path == path
        answers.append((request.status, len(request.text)))
    client.close()
    return answers


def test_every_guarantee_is_broken_by_a_fault() -> None:
    assert {plant.guarantee for plant in PLANTS.values()} == {one.name for one in GUARANTEES}
    assert len(PLANTS) >= 25


@pytest.mark.parametrize(
    ("guarantee", "fault"),
    [
        ("read-new", remembers(lambda _, reply: reply.status == 404, 12)),
        ("clock", shifted("date", 3600)),
        ("replace-put", forgets_conditions("PUT", "if-match")),
    ],
)
def test_one_of_two_endpoints_breaks_a_guarantee(store: str, guarantee: str, fault: Fault) -> None:
    with planted(store, nothing) as right, planted(store, fault) as wrong:
        [found] = findings(right, wrong, names=(guarantee,))
    assert found.verdict is GuaranteeVerdict.UNSAFE
    assert {request["endpoint"] for request in found.proof} == {right, wrong}


def test_lost_answers_over_tls_are_no_broken_guarantees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
    with serving(LoopbackSettings(strict=True, tls=pem)) as server:
        found = findings(server.endpoint_url, names=("lost-create", "lost-complete", "cut-put"))
    assert {one.verdict for one in found} == {GuaranteeVerdict.SAFE}


def test_denied_reads_accuse_nobody(store: str) -> None:
    def denies(call: Call, send: Send) -> Reply:
        reply = send(call)
        return error(403, "AccessDenied") if call.is_get() and reply.status == 404 else reply

    with planted(store, denies) as url:
        found = findings(url, names=("create-put", "read-new", "read-deleted", "cut-put"))
    assert {one.guarantee.name: one.verdict for one in found} == {
        "create-put": GuaranteeVerdict.SAFE,
        **dict.fromkeys(("cut-put", "read-deleted", "read-new"), GuaranteeVerdict.UNKNOWN),
    }


def test_a_proof_has_no_credentials(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-long-secret-of-the-user")

    def echoes(call: Call, send: Send) -> Reply:
        text = f"a-long-secret-of-the-user {call.headers['authorization']}"
        return error(404, text) if call.is_get() else send(call)

    with planted(store, echoes) as url:
        targets = [Target(bucket="any", prefix="q/", endpoint_url=url, region="r")]
        lab = Lab(targets=targets, functions=4, ledger=io.StringIO())
        [found] = measure(lab, chosen(["read-new"]), budget_s=PATIENCE_S, show=lambda _: None)
        lab.close()
    text = json.dumps(found.to_json())
    assert found.proof
    assert "a-long-secret" not in text
    assert "***" in text


def test_a_race_of_conditions_is_found() -> None:
    with serving(LoopbackSettings(racy_conditions=True)) as server:
        [found] = findings(server.endpoint_url, names=("replace-put",))
    assert (found.verdict, found.at_most) == (GuaranteeVerdict.UNSAFE, None)


@pytest.mark.parametrize(
    "run", [0, *(pytest.param(number, marks=pytest.mark.full) for number in range(1, 20))]
)
def test_a_correct_store_is_not_accused(store: str, run: int) -> None:
    del run
    with planted(store, nothing) as url:
        found = findings(store, url, functions=4)
    assert {one.verdict for one in found} == {GuaranteeVerdict.SAFE}, [
        (one.guarantee.name, one.reason)
        for one in found
        if one.verdict is not GuaranteeVerdict.SAFE
    ]
