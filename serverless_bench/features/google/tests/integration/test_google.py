"""gs:// from the command to the store and back, on the loopback store's Google API."""

import json
import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import count, repeat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from serverless_bench.base.errors import AccessDenied, NotFound, OperationError
from serverless_bench.base.units import MIB
from serverless_bench.driver.cleanup import delete
from serverless_bench.features.google.client import NOBODY, find_token
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.objects import StoredObject
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import StoreProtocol, Target
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.run import load_run
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.command import Done, Sbench
from tests.commands.processes import PATIENCE_S
from tests.house.members import uses
from tests.matrix.proxy import proxy_of
from tests.stores.faulty import Exchange, FaultServer, fails, works

BUCKET = "mine"
KEY = f"sbench/{'0123456789abcdef' * 2}.900"
TIMEOUT_S = PATIENCE_S


@pytest.fixture
def request_log(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def store(request_log: Path) -> Iterator[LoopbackServer]:
    with serving(LoopbackSettings(strict=True, request_log=request_log)) as server:
        yield server


@pytest.fixture
def sbench(tmp_path: Path) -> Sbench:
    """The command, without credentials."""
    return Sbench(tmp_path, {})


def on(url: str, *more: str | int) -> list[str | int]:
    return ["--endpoint-url", url, "--bucket", f"gs://{BUCKET}", "--format", "json", *more]


def target_of(url: str) -> Target:
    return Target(bucket=BUCKET, protocol=StoreProtocol.GS, endpoint_url=url)


def stored(store: LoopbackServer) -> int:
    count: int = store.state.statistics()["objects"]
    return count


def check(sbench: Sbench, store: LoopbackServer, name: str, request_log: Path) -> Done:
    store.state.request_log.settle()
    return sbench("check", f"sbench-runs/{name}", "--request-log", request_log)


@uses("feature check")
@pytest.mark.parametrize("parts", [False, True])
def test_write_read_and_clean(
    sbench: Sbench, store: LoopbackServer, request_log: Path, *, parts: bool
) -> None:
    split = ["--client-option", "multipart=true"] if parts else []
    shape = ["--number", "3", "--mb", "6", "--key-file", "keys", *split]
    written = sbench("write", *on(store.endpoint_url, "--name", "w", *shape))
    assert (written.code, written.json["ok"]) == (0, 3), written.err
    assert ("upload_part" in store.state.statistics()["requests"]) == parts
    read = sbench(
        "read", *on(store.endpoint_url, "--name", "r", "--number", 3, "--key-file", "keys")
    )
    assert (read.code, read.json["verified_bytes"]) == (0, 3 * 6 * MIB), read.err
    for name in ("w", "r"):
        done = check(sbench, store, name, request_log)
        assert "0 differences" in done.out, done.out
    shown = sbench("report", "sbench-runs/w").out
    assert f"gs://{BUCKET} at {store.endpoint_url}" in shown
    cleaned = sbench("clean", "sbench-runs/w")
    assert (cleaned.code, stored(store)) == (0, 0), cleaned.err


@uses("feature check")
def test_a_mix_of_all_operations(sbench: Sbench, store: LoopbackServer, request_log: Path) -> None:
    mix = "get=30,get_range=20,head=10,put=10,list=10,delete=5,delete_many=5,copy=10"
    shape = ["--number", "2", "--objects", "8", "--mb", "1", "--operations", "60", "--mix", mix]
    done = sbench("mixed", *on(store.endpoint_url, "--name", "m", *shape))
    assert (done.code, done.json["ok"]) == (0, 2), done.err
    assert {"copy", "delete", "head", "list_objects"} <= {*store.state.statistics()["requests"]}
    found = check(sbench, store, "m", request_log)
    assert "0 differences" in found.out, found.out
    assert sbench("clean", "sbench-runs/m").code == 0
    assert stored(store) == 0


def test_a_run_goes_on_where_its_driver_died(sbench: Sbench, store: LoopbackServer) -> None:
    sbench("write", *on(store.endpoint_url, "--name", "w", "--number", 4, "--mb", 1))
    records = sbench.directory / "sbench-runs" / "w" / "records.jsonl"
    data = records.read_bytes()
    records.write_bytes(data[: len(data) // 2])
    resumed = sbench("resume", "sbench-runs/w", "--format", "json")
    assert (resumed.code, resumed.json["ok"]) == (0, 4), resumed.err
    assert sbench("clean", "sbench-runs/w").code == 0
    assert stored(store) == 0


@uses("executor workers")
def test_workers_find_their_events_and_leave_their_records(
    sbench: Sbench, store: LoopbackServer
) -> None:
    control = f"gs://{BUCKET}/control/"
    worker = sbench.apart.start(
        "worker", "--control", control, "--endpoint-url", store.endpoint_url
    )
    try:
        assert worker.stdout is not None
        assert f"takes events from {control}" in worker.stdout.readline()
        flags = ["--executor", "workers", "--control-prefix", "control/", "--name", "w"]
        done = sbench("write", *on(store.endpoint_url, *flags, "--number", 2, "--mb", 1))
        assert (done.code, done.json["ok"]) == (0, 2), done.err
    finally:
        worker.terminate()
        worker.communicate()


def test_a_flipped_bit_is_found(sbench: Sbench) -> None:
    with serving(LoopbackSettings(rates={FaultKind.FLIP: 1.0}, flip_bits=1)) as store:
        sbench("write", *on(store.endpoint_url, "--number", 1, "--mb", 1, "--key-file", "keys"))
        done = sbench("read", *on(store.endpoint_url, "--number", 1, "--key-file", "keys"))
    assert done.code == 7
    assert done.json["errors"].keys() == {"corrupt"}


def test_another_ones_object_is_not_deleted(sbench: Sbench, store: LoopbackServer) -> None:
    sbench("write", *on(store.endpoint_url, "--name", "w", "--number", 3, "--mb", 1))
    theirs = load_run(sbench.directory / "sbench-runs" / "w").ledger()[0]
    store.state.objects.put(BUCKET, StoredObject(key=theirs, size=6, verbatim=b"theirs"))
    done = sbench("clean", "sbench-runs/w")
    assert done.code != 0
    found = store.state.objects.find(BUCKET, theirs)
    assert found is not None
    assert (found.verbatim, stored(store)) == (b"theirs", 1)


def test_objects_overwritten_after_inspection_are_not_deleted(
    store: LoopbackServer,
) -> None:
    ours = StoredObject(key=KEY, size=900)
    store.state.objects.put(BUCKET, ours)

    def overwrites(method: str, path: str) -> None:
        del path
        if method == "DELETE":
            # The same bytes, so that the entity tag is the same.
            store.state.objects.put(BUCKET, ours)

    with proxy_of(store.endpoint_url) as between:
        between.rule = overwrites
        deleted = delete(target_of(between.url), [KEY])
        assert (deleted.objects, deleted.foreign, stored(store)) == (0, [KEY], 1)
    assert delete(target_of(store.endpoint_url), [KEY]).objects == 1


def without_conditions(version: str | None) -> FaultServer:
    """A store with one object that does not support conditional deletes."""
    size, data = 900, bytearray(900)
    Keystream(KEY).readinto_at(0, data)
    headers = {"ETag": '"x"', "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
    if version is not None:
        headers["x-goog-generation"] = version

    def answers(exchange: Exchange) -> bool:
        if "range" in exchange.headers:
            end = int(exchange.headers["range"].rpartition("-")[2]) + 1
            where = {"Content-Range": f"bytes 0-{end - 1}/{size}"}
            exchange.say(206, bytes(data[:end]), headers | where)
        elif exchange.method == "GET" or "x-goog-if-generation-match" in exchange.headers:
            exchange.say(501, b"<Error><Code>NotImplemented</Code></Error>")
        else:
            exchange.say(204)
        return True

    return FaultServer(repeat(answers))


@pytest.mark.parametrize("version", ["17", None])
def test_no_object_is_deleted_without_a_condition(version: str | None) -> None:
    with without_conditions(version) as server:
        deleted = delete(target_of(server.endpoint_url), [KEY])
    assert (deleted.objects, deleted.failed) == (0, [KEY])
    tried = [line for line in server.seen if line.startswith("DELETE")]
    assert len(tried) == (version is not None)


def test_open_uploads_of_a_run_are_given_up_and_others_are_not(store: LoopbackServer) -> None:
    theirs = KEY.replace("0123", "3210")
    for key in (KEY, theirs):
        store.state.objects.begin_upload(BUCKET, key)
    deleted = delete(target_of(store.endpoint_url), [KEY])
    assert (deleted.uploads, deleted.lists_uploads) == (1, True)
    assert [upload.key for upload in store.state.objects.uploads(BUCKET, "")] == [theirs]


def test_a_claim_is_made_once(store: LoopbackServer) -> None:
    with closing(ObjectIO(target_of(store.endpoint_url))) as objects:
        objects.put("claim", b"mine", timeout_s=TIMEOUT_S, if_absent=True)
        with pytest.raises(OperationError) as caught:
            objects.put("claim", b"theirs", timeout_s=TIMEOUT_S, if_absent=True)
        assert caught.value.status == 412
        assert objects.get("claim", timeout_s=TIMEOUT_S) == b"mine"
        seen = objects.head("claim", 10, timeout_s=TIMEOUT_S)
        objects.delete("claim", etag=seen.etag, timeout_s=TIMEOUT_S)
        with pytest.raises(NotFound):
            objects.head("claim", 10, timeout_s=TIMEOUT_S)


def test_without_credentials_one_line_says_so(sbench: Sbench, tmp_path: Path) -> None:
    done = sbench("write", "--bucket", "gs://mine", "--number", 1, "--mb", 1, HOME=str(tmp_path))
    assert done.code == 5
    assert done.err.startswith("sbench: bucket 'gs://mine': no credentials: set GOOGLE_APPLICATION")
    assert len(done.err.splitlines()) == 1


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def service_account(path: Path, private_key: str, url: str) -> Path:
    account = {
        "type": "service_account",
        "client_email": "sbench@example.org",
        "private_key_id": "any",
        "private_key": private_key,
        "token_uri": f"{url}/token",
    }
    path.write_text(json.dumps(account))
    return path


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"])
def test_a_service_account_gets_tokens_and_has_them_renewed(
    name: str, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = count(1)

    def gives(exchange: Exchange) -> bool:
        exchange.drain()
        # google-auth considers a token that expires within minutes invalid.
        answer = {"access_token": f"token-{next(given)}", "expires_in": 1, "token_type": "Bearer"}
        exchange.say(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})
        return True

    with FaultServer(repeat(gives)) as server:
        path = service_account(tmp_path / "account.json", private_key, server.endpoint_url)
        monkeypatch.setenv(name, str(path))
        token = find_token()
        assert [token(), token()] == ["token-1", "token-2"]


def test_a_refused_token_is_reported(
    private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(repeat(fails(401))) as server:
        path = service_account(tmp_path / "account.json", private_key, server.endpoint_url)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        token = find_token()
        with pytest.raises(AccessDenied, match="no token"):
            token()


def test_a_login_is_taken_without_further_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    login = {"client_id": "any", "client_secret": "any", "refresh_token": "any"}
    path = tmp_path / "login.json"
    path.write_text(json.dumps({"type": "authorized_user", **login}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with warnings.catch_warnings(record=True) as warned:
        find_token()
    assert (warned, caplog.records) == ([], [])


@pytest.mark.parametrize(
    "name",
    ["GOOGLE_BEARER_TOKEN", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"],
)
def test_a_token_only_goes_to_google(
    name: str, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service_account(tmp_path / "account.json", private_key, "http://127.0.0.1:1")
    token = "a-token-that-is-worth-something"
    monkeypatch.setenv(name, token if name == "GOOGLE_BEARER_TOKEN" else str(path))
    seen: list[str] = []

    def listens(exchange: Exchange) -> bool:
        seen.append(exchange.headers.get("authorization", ""))
        return works(exchange)

    with (
        FaultServer([listens] * 3) as server,
        closing(ObjectIO(target_of(server.endpoint_url))) as objects,
    ):
        objects.put("claim", b"", timeout_s=TIMEOUT_S)
        objects.delete("claim", etag="17", timeout_s=TIMEOUT_S)
    assert seen == [f"Bearer {NOBODY}"] * 2
