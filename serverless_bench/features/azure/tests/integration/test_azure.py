"""Azure Blob Storage as a user meets it: every command that has a bucket, on Azurite."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from serverless_bench.driver import cleanup
from serverless_bench.job.workload import Workload
from serverless_bench.rundir.run import load_run
from serverless_bench.worker.object_io import Head
from tests.azurite import ACCOUNT, KEY, container
from tests.combinations.cases import cut
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.stores.servers import Server

URL = "az://test"
LONG = "long/" * 160
JOB = """
name = "j"
[[stages]]
name = "fill"
kind = "prepare"
workload = "write"
number = 2
objects = 2
sizes = "uniform:1KiB:64KiB"
compressibility = 2.0
[[stages]]
name = "back"
kind = "execute"
workload = "read"
keys = "fill"
number = 2
objects = 2
"""
OWN = """
def mine(tools):
    key = tools.new_key(0)
    tools.put(key)
    tools.check(key)
"""
MIX = "get=3,put=2,get_range=1,head=1,list=1,delete=1,delete_many=1,copy=1"


@pytest.fixture
def sbench(tmp_path: Path, azurite: Server) -> Sbench:
    """The command, where the environment has Azurite's account."""
    return Sbench(tmp_path, {**azurite.environment, "SBENCH_ENDPOINT_URL": azurite.endpoint_url})


@pytest.fixture
def at(prefix: str) -> list[str]:
    return ["--bucket", URL, "--prefix", prefix, "--executor", "inline", "--format", "json"]


def stored(server: Server, prefix: str) -> list[str]:
    with container(server) as blobs:
        return list(blobs.list_blob_names(name_starts_with=prefix))


def overwrite(server: Server, key: str, data: bytes) -> None:
    with container(server) as blobs:
        blobs.upload_blob(key, data, overwrite=True)


def written(sbench: Sbench, at: list[str]) -> list[str]:
    """Write four objects as the run ``w``, and return their keys."""
    done = sbench("write", *at, "--number", 2, "--objects", 2, "--name", "w", "--key-file", "k")
    assert done.code == 0, done
    return (sbench.directory / "k").read_text().split()


def read(sbench: Sbench, *flags: str) -> Done:
    common = ("--bucket", URL, "--executor", "inline", "--format", "json", "--key-file", "k")
    return sbench("read", *common, *flags)


def test_objects_are_written_read_back_and_deleted(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    at += ["--size", "3MiB"]
    keys = written(sbench, at)
    header = json.loads((sbench.directory / "sbench-runs/w/run.json").read_text())
    assert header["job"]["target"]["protocol"] == "az"
    client = header["provenance"]["client"]
    assert (client["attempts"], client["checksum"]) == ("hidden", "none")
    assert client["signing"].startswith("Shared Key")
    assert KEY not in json.dumps(header)
    whole = read(sbench).json
    assert (whole["ok"], whole["verified_bytes"], whole["bytes"]) == (4, 12 << 20, 12 << 20)
    assert whole["store"].startswith(f"{URL} at http://127.0.0.1:")
    ranges = read(sbench, "--part-size", "1MiB", "--connections", "3", "--stat", "each")
    assert (ranges.code, ranges.json["verified_bytes"]) == (0, 12 << 20)
    shared = read(sbench, "--split", "2")
    assert (shared.code, shared.json["verified_bytes"]) == (0, 12 << 20)
    assert stored(azurite, prefix) == sorted(keys)
    cleaned = sbench("clean", "w")
    assert (cleaned.code, stored(azurite, prefix)) == (0, []), cleaned
    assert cleaned.out.startswith("deleted 4 objects")


@pytest.mark.parametrize("rest", ["bench-", "mäß/日本-", LONG], ids=["plain", "odd", "long"])
def test_keys_of_all_kinds_go_there_and_back(
    sbench: Sbench, azurite: Server, prefix: str, rest: str
) -> None:
    common = ("--bucket", URL, "--executor", "inline", "--prefix", prefix + rest)
    job = sbench.directory / "job.toml"
    job.write_text(JOB)
    done = sbench("run", job, *common, "--name", "j")
    assert done.code == 0, done
    paced = sbench("write", *common, "--rate", 5, "--duration", 2, "--size", "4KiB")
    assert paced.code == 0, paced
    for run in sorted((sbench.directory / "sbench-runs").glob("**/run.json")):
        assert sbench("clean", run.parent).code == 0
    assert stored(azurite, prefix) == []


@uses("feature custom")
def test_a_function_of_the_users_own_puts_and_checks(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    (sbench.directory / "own.py").write_text(OWN)
    done = sbench("custom", "own.py:mine", *at, "--number", 2, "--size", "64KiB", "--name", "c")
    assert (done.code, done.json["ok"], done.json["verified_bytes"]) == (0, 2, 2 << 16), done
    assert len(stored(azurite, prefix)) == 2
    assert sbench("clean", "c").code == 0
    assert stored(azurite, prefix) == []


def test_obstores_own_blocks_become_one_object(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    flags = ("--size", "11MiB", "--client-option", "multipart=yes", "--key-file", "k")
    done = sbench("write", *at, "--number", 1, *flags)
    assert done.code == 0, done
    with container(azurite) as blobs:
        blob = blobs.get_blob_client(*stored(azurite, prefix))
        committed, uncommitted = blob.get_block_list("all")
    assert ([block.size for block in committed], uncommitted) == ([5 << 20, 5 << 20, 1 << 20], [])
    assert read(sbench).json["verified_bytes"] == 11 << 20


@uses("feature barrier")
def test_operations_of_all_kinds_begin_together(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    """In processes of their own: the driver reads their announcements."""
    at[at.index("inline")] = "local"
    flags = ("--number", 2, "--operations", 25, "--size", "100KiB", "--mix", MIX, "--barrier", "1")
    done = sbench("mixed", *at, *flags, "--name", "m")
    assert (done.code, done.json["ok"]) == (0, 2), done
    assert done.json["barrier"]["announced"] == 2
    # The store's own clock, which only Azure's library shows.
    assert load_run(sbench.directory / "sbench-runs/m").probes
    assert sbench("clean", "m").code == 0
    assert stored(azurite, prefix) == []


def test_a_flipped_byte_is_found(sbench: Sbench, azurite: Server, at: list[str]) -> None:
    at += ["--size", "1MiB"]
    key = written(sbench, at)[2]
    with container(azurite) as blobs:
        data = bytearray(blobs.download_blob(key).readall())
    data[777_777] ^= 0x10
    overwrite(azurite, key, bytes(data))
    done = read(sbench, "--name", "r")
    assert (done.code, done.json["corrupt_objects"], done.json["ok"]) == (7, 1, 3), done
    assert f"{key}: 1 byte at 777777 is not what was written" in sbench("report", "r").out


def test_a_run_whose_driver_died_goes_on(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    at += ["--size", "64KiB"]
    keys = written(sbench, at)
    cut(sbench.directory / "sbench-runs/w")
    done = sbench("resume", "w", "--format", "json")
    assert (done.code, done.json["ok"]) == (0, 2), done
    assert set(keys) <= set(stored(azurite, prefix))
    assert sbench("clean", "w").code == 0
    assert stored(azurite, prefix) == []


def test_overwritten_objects_of_intruders_remain(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anybody looks, and between the look and the deletion."""
    at += ["--size", "64KiB"]
    before, between, *_ = written(sbench, at)
    overwrite(azurite, before, b"theirs")
    is_ours = cleanup._is_ours

    def looked(key: str, head: Head, *, hashes: set[int], workload: Workload) -> bool:
        found = is_ours(key, head, hashes=hashes, workload=workload)
        if key == between:
            overwrite(azurite, key, b"theirs, too")
        return found

    monkeypatch.setattr(cleanup, "_is_ours", looked)
    done = sbench("clean", "w")
    assert stored(azurite, prefix) == sorted([before, between])
    assert done.code == 6, done
    assert done.out.startswith("deleted 2 objects")
    assert done.err.count("as this run did not write it") == 2
    with container(azurite) as blobs:
        assert blobs.download_blob(between).readall() == b"theirs, too"


@uses("executor workers")
def test_workers_claim_their_work_in_the_same_container(
    sbench: Sbench, azurite: Server, prefix: str
) -> None:
    control = f"{URL}/{prefix}control"
    worker = sbench.apart.start("worker", "--control", control)
    assert worker.stdout is not None
    assert f"takes events from {control}/" in worker.stdout.readline()
    flags = ("--executor", "workers", "--control-prefix", control, "--format", "json")
    done = sbench(
        *("write", "--bucket", URL, "--prefix", f"{prefix}data/", *flags),
        *("--number", 3, "--size", "64KiB", "--name", "w"),
    )
    assert (done.code, done.json["ok"]) == (0, 3), done
    places = {key.removeprefix(prefix).split("/")[0] for key in stored(azurite, prefix)}
    assert places == {"control", "data"}


def test_a_shared_access_signature_will_do(
    sbench: Sbench, azurite: Server, at: list[str], prefix: str
) -> None:
    """And no message or file contains it."""
    signature = generate_account_sas(
        ACCOUNT,
        KEY,
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, write=True, create=True, delete=True, list=True),
        expiry="2100-01-01",
        protocol="https,http",
    )
    # Variables that obstore would prefer to it.
    other = {"AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "t"}
    without = {n: text for n, text in sbench.environment.items() if text != KEY}
    here = Sbench(
        sbench.directory, {**without, **other, "AZURE_STORAGE_SAS_TOKEN": f"?{signature}"}
    )
    written(here, [*at, "--size", "64KiB"])
    assert read(here).json["ok"] == 4
    done = here("clean", "w")
    assert (done.code, stored(azurite, prefix)) == (0, [])
    nowhere = here("read", "--bucket", "az://nowhere", "--key-file", "k")
    assert nowhere.code == 5
    output = parse_qs(signature)["sig"][0]
    files = [file for file in sbench.directory.rglob("*") if file.is_file()]
    assert len(files) > 4
    for text in (nowhere.err, done.err, *map(read_text, files)):
        assert output not in text
        assert quote(output, safe="") not in text


def read_text(file: Path) -> str:
    return file.read_text(errors="replace")


@uses("feature studies")
def test_an_experiment_has_cells_for_the_cloud(sbench: Sbench, azurite: Server) -> None:
    """Cells for the protocol of the bucket, beside the published values for that cloud."""
    few = ("--only", "functions=2", "--repeats", 1, "--run-duration", 0, "--set", "size=64KiB")
    flags = (*few, "--format", "json")
    done = sbench("study", "run", "lithops-object-storage", "--bucket", URL, "--name", "e", *flags)
    assert done.code == 0, done
    cells = done.json["cells"]
    assert {cell["at"]["cloud"] for cell in cells} == {"azure_here"}
    assert [cell["at"]["phase"] for cell in cells] == ["write", "read"]


def test_the_doctor_looks_at_a_container(sbench: Sbench) -> None:
    found = sbench("doctor", "--bucket", URL, "--write-test")
    assert found.code == 0, found
    assert f"bucket {URL}: can be written, and honours If-None-Match" in found.out
    missing = sbench("doctor", "--bucket", "az://nowhere")
    assert missing.code != 0
    assert "bucket az://nowhere: does not exist" in missing.out


@pytest.mark.parametrize(
    ("environment", "output"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "d3Jvbmc="}, "refuses these credentials (Auth"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": "no key"}, "Invalid Access Key"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": ""}, "no credentials: set AZURE_STORAGE_ACCOUNT_NAME"),
        ({"SBENCH_ENDPOINT_URL": "http://127.0.0.1:1"}, "127.0.0.1:1 does not answer"),
    ],
)
def test_refused_credentials_are_one_line(
    sbench: Sbench, environment: dict[str, str], output: str
) -> None:
    done = sbench("write", "--bucket", URL, "--number", 1, "--size", "1KiB", **environment)
    assert done.code == 5, done
    assert output in done.err
    assert re.fullmatch(r"sbench: .*\n(hint: .*\n)?", done.err), done.err
