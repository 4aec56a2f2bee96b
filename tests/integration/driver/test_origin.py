"""A run directory from elsewhere causes no requests without --trust."""

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench import JobSpec, Target, clean, resume_job, run_job
from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.cli.main import place_of
from serverless_bench.driver import origin
from serverless_bench.rundir.digests import SEAL
from serverless_bench.rundir.run import load_run
from tests.data.runs import forge
from tests.fuzz.watched import Nursery, nursery
from tests.house.removed import skip_if_named
from tests.stores.faulty import FaultServer, fails
from tests.stores.servers import KEYS

RECORDED = Path(__file__).parents[2] / "recorded"
NAMED = "http://store.example.invalid:9000"
AWS = "https://s3.us-east-1.amazonaws.com"


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    commands = ("resume", "clean", "report", "check", "compare", "export", "ls")
    warm = (place_of(name).partition(":")[0] for name in commands)
    with nursery(
        *warm, "serverless_bench.driver.clean", "serverless_bench.metrics.summary"
    ) as found:
        yield found


def foreign(folder: Path, recorded: str = "write", **changes: Any) -> Path:
    """Return a run of somebody else's that has lost its functions; changes are of its job."""
    path = folder / "theirs"
    shutil.copytree(RECORDED / recorded, path)
    header = json.loads((path / "run.json").read_text())
    for name, value in changes.items():
        where, _, field = name.partition("__")
        if field:
            header["job"][where][field] = value
        else:
            header["job"][where] = value
    forge(path, header)
    (path / "records.jsonl").write_text("")
    return path


@pytest.fixture(scope="module")
def theirs() -> Iterator[str]:
    """A store that refuses every request."""
    with FaultServer([fails(403, "AccessDenied")] * 99) as server:
        yield server.endpoint_url


CONTROL = {"client": "wire", "bucket": "b", "prefix": "c/", "endpoint_url": NAMED, "region": "eu"}
FILES = {**json.loads((RECORDED / "array/run.json").read_text())["job"]["load"]["array"]}
ASKS_FOR = [
    pytest.param("write", {"target__endpoint_url": NAMED}, NAMED, id="a store"),
    pytest.param(
        "write", {"target__protocol": "az", "target__client": "obstore"}, "(bucket 'az://", id="az"
    ),
    pytest.param("write", {"endpoints": [NAMED]}, NAMED, id="another one besides"),
    pytest.param("write", {"control": CONTROL}, NAMED, id="a place for records"),
    pytest.param(
        "write", {"target__store": "seaweedfs", "control": CONTROL}, NAMED, id="besides our own"
    ),
    pytest.param(
        "lambda",
        {"target__endpoint_url": AWS, "control__endpoint_url": AWS, "function": ["delete-it-all"]},
        "the functions 'delete-it-all'",
        id="functions on AWS",
    ),
    pytest.param(
        "write",
        {"target__endpoint_url": AWS, "scheduler": "tcp://10.0.0.1:8786"},
        "the Dask scheduler 'tcp://10.0.0.1:8786'",
        id="a cluster",
    ),
    pytest.param(
        "array",
        {"target__endpoint_url": AWS, "load__array": {**FILES, "path": "/home/victim"}},
        "the directory '/home/victim'",
        id="files",
    ),
    pytest.param("write", {"target__endpoint_url": AWS}, AWS, id="AWS, as settings would"),
    pytest.param(
        "write",
        {"target__store": "seaweedfs"},
        "it uses the embedded store",
        id="the embedded store",
    ),
    pytest.param(
        "write",
        {"target__store": "seaweedfs", "target__endpoint_url": NAMED, "endpoints": [NAMED]},
        f"the embedded store, {NAMED}",
        id="a store under the name of the embedded one",
    ),
]


@pytest.mark.parametrize("command", ["resume", "clean"])
@pytest.mark.parametrize(("recorded", "changes", "says"), ASKS_FOR)
def test_a_foreign_directory_causes_no_request(
    sbench: Nursery, tmp_path: Path, command: str, recorded: str, changes: dict[str, Any], says: str
) -> None:
    foreign(tmp_path, recorded, **changes)
    ended = sbench(tmp_path, command, "theirs", environment=KEYS)
    ended.check(2)
    assert ended.asked == ()
    problem, hint = ended.err.splitlines()
    assert problem.startswith("sbench: theirs was not made here; it uses ")
    assert says in problem
    assert hint.startswith("hint: --trust ")


@pytest.mark.parametrize("command", ["resume", "clean"])
@pytest.mark.parametrize(
    "endpoint",
    ["http://me:hunter2@127.0.0.1:9", "http://127.0.0.1:9\n", "http://127.0.0.1\x1b[2J:9"],
)
def test_an_endpoint_that_could_not_be_made_is_not_used(
    sbench: Nursery, tmp_path: Path, command: str, endpoint: str
) -> None:
    foreign(tmp_path, target__endpoint_url=endpoint)
    ended = sbench(tmp_path, command, "theirs", "--trust", environment=KEYS)
    ended.check(2, 8)
    assert ended.asked == ()
    assert "hunter2" not in ended.err
    assert "\x1b" not in ended.err


@pytest.mark.parametrize("command", ["report", "ls", "export", "plot"])
def test_nor_is_a_password_in_one_shown(sbench: Nursery, tmp_path: Path, command: str) -> None:
    skip_if_named([command])
    foreign(tmp_path, target__endpoint_url="http://me:hunter2@127.0.0.1:9")
    words = {"ls": ("--run-dir", "."), "export": ("csv", "theirs", "out")}
    ended = sbench(tmp_path, command, *words.get(command, ("theirs",)))
    assert ended.code in {0, 2, 8}, ended
    assert "hunter2" not in f"{ended.out}{ended.err}"
    assert ended.asked == ()


@pytest.mark.parametrize("command", ["resume", "clean"])
def test_a_trusted_directory_names_its_servers(
    sbench: Nursery, tmp_path: Path, theirs: str, command: str
) -> None:
    foreign(tmp_path, target__endpoint_url=theirs)
    ended = sbench(tmp_path, command, "theirs", "--trust", environment=KEYS, limit_s=60)
    assert f"theirs was not made here; it uses {theirs} (bucket " in ended.err
    assert any(theirs.rpartition(":")[2] in what for what in ended.asked), ended


@pytest.mark.parametrize(
    "where", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "SBENCH_ENDPOINT_URL"]
)
def test_a_store_that_the_environment_names_needs_trust_as_well(
    sbench: Nursery, tmp_path: Path, theirs: str, where: str
) -> None:
    """The ledger is the directory's word, too, and names objects of this user's own store."""
    foreign(tmp_path, target__endpoint_url=theirs)
    ended = sbench(tmp_path, "clean", "theirs", environment={**KEYS, where: f"{theirs}/"})
    ended.check(2)
    assert ended.asked == ()


def test_functions_are_not_sent_to_an_endpoint_beside_the_embedded_store(
    tmp_path: Path, theirs: str
) -> None:
    """Functions use the further endpoints in turns, whatever the first endpoint is."""
    path = foreign(
        tmp_path, target__store="seaweedfs", target__endpoint_url=theirs, endpoints=[theirs]
    )
    with pytest.raises(ArchiveError, match="`endpoints` do not apply to the embedded store"):
        resume_job(path, trust=True)


def test_settings_beside_the_directory_do_not_count_as_consent(
    sbench: Nursery, tmp_path: Path, theirs: str
) -> None:
    foreign(tmp_path, target__endpoint_url=theirs)
    (tmp_path / "sbench.toml").write_text(f'endpoint_url = "{theirs}"\n')
    ended = sbench(tmp_path, "clean", "theirs", environment=KEYS)
    ended.check(2)
    assert ended.asked == ()
    (tmp_path / "sbench.toml").write_text("[clean]\ntrust = true\n")
    for named, says in (
        ("", "sbench.toml does not count"),
        ("sbench.toml", "must not set --trust"),
    ):
        environment = {**KEYS, "SBENCH_CONFIG": named}
        ended = sbench(tmp_path, "clean", "theirs", environment=environment)
        ended.check(2)
        assert says in ended.err
        assert ended.asked == ()


@pytest.mark.parametrize(
    "words",
    [
        ("report", "theirs"),
        ("check", "theirs"),
        ("plot", "theirs", "--output", "plot.png"),
        ("export", "csv", "theirs", "out"),
        ("compare", "theirs", "theirs"),
        ("ls", "--run-dir", "."),
    ],
)
def test_commands_that_only_read_send_no_request(
    sbench: Nursery, tmp_path: Path, words: tuple[str, ...]
) -> None:
    skip_if_named(words)
    path = foreign(tmp_path, target__endpoint_url=NAMED, control=CONTROL, endpoints=[NAMED])
    shutil.copy(RECORDED / "write/records.jsonl", path)
    ended = sbench(tmp_path, *words, environment={**KEYS, "AWS_CONFIG_FILE": "/dev/null"})
    assert ended.code in {0, 2, 6, 10, 11}, ended
    assert ended.asked == ()


def lost(tmp_path: Path, endpoint_url: str) -> Path:
    """Return a run of this user that lost its records."""
    target = Target(bucket="bucket", endpoint_url=endpoint_url)
    job = JobSpec(workload="write", target=target, size=100, number=1, executor="inline")
    path = run_job(job, tmp_path / "mine").path
    (path / "records.jsonl").write_text("")
    return path


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with FaultServer() as server:
        yield server


def test_a_run_made_here_is_recognized_in_any_folder(store: FaultServer, tmp_path: Path) -> None:
    path = lost(tmp_path, store.endpoint_url)
    copied = shutil.copytree(path, tmp_path / "copied")
    for each in (path, copied):
        assert origin.confirm(load_run(each), trust=False) == ""
        assert resume_job(each).ended


def _another_store(path: Path) -> None:
    header = json.loads((path / "run.json").read_text())
    header["job"]["target"]["endpoint_url"] = NAMED
    (path / "run.json").write_text(json.dumps(header))


def _without_seal(path: Path) -> None:
    header = json.loads((path / "run.json").read_text())
    del header[SEAL]
    (path / "run.json").write_text(json.dumps(header))


def _strange_seal(path: Path) -> None:
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**header, SEAL: ["ä"]}))


@pytest.mark.parametrize("change", [_another_store, _without_seal, _strange_seal])
def test_a_run_that_was_changed_since_is_not(
    store: FaultServer, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = lost(tmp_path, store.endpoint_url)
    change(path)
    store.seen.clear()
    for command in (resume_job, clean):
        with pytest.raises(UsageError, match="was not made here"):
            command(path)
    assert store.seen == []


def test_nor_is_one_that_another_user_made(
    store: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lost(tmp_path, store.endpoint_url)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else's"))
    with pytest.raises(UsageError, match="was not made here"):
        resume_job(path)
    assert resume_job(path, trust=True).ended


def test_no_other_user_can_read_the_key(
    store: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = lost(tmp_path, store.endpoint_url)
    key = tmp_path / "state/sbench/origin.key"
    assert [*key.parent.iterdir()] == [key]
    assert [stat.S_IMODE(one.stat().st_mode) for one in (key.parent, key)] == [0o700, 0o600]
    assert origin.is_ours(path)
    key.chmod(0o644)
    assert not origin.is_ours(path)
    key.chmod(0o600)
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    assert not origin.is_ours(path)
    key.unlink()
    os.mkfifo(key)
    assert not origin.is_ours(path)
    # The next run has a key of its own again.
    assert origin.is_ours(lost(tmp_path / "later", store.endpoint_url))
    assert [*key.parent.iterdir()] == [key]


def test_without_a_state_folder_only_the_process_knows_its_run(
    store: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    path = lost(tmp_path, store.endpoint_url)
    assert origin.is_ours(path)
    origin._fleeting_key.cache_clear()
    assert not origin.is_ours(path)


def test_the_records_of_a_run_on_the_embedded_store_are_where_that_is_now(
    tmp_path: Path,
) -> None:
    run = load_run(RECORDED / "lambda")
    control = run.job.control
    assert control is not None
    here = replace(run.job.target, store="seaweedfs")
    job = replace(run.job, target=here, control=replace(control, store="seaweedfs"), options={})
    assert [*origin._stores(job)] == ["the embedded store"]
