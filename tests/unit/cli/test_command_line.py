"""Messages of the command line for mistakes of users, in this process."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.location import check_meant
from serverless_bench.job.target import Target
from tests.commands.command import Call
from tests.house.members import RIGS, uses
from tests.tables import each_row


@uses(*RIGS)
@pytest.mark.parametrize(
    ("words", "hint", "arguments"),
    [
        ("80000 is not in the range", "", ("serve", "--port", "80000")),
        ("80000 is not in the range", "", ("lambda-host", "--port", "80000")),
        ("--network-rate: '20' is not a rate", "20Gbit", ("write", "--network-rate", "20")),
        ("sai3 needs a file", "sbench convert FILE", ("convert", "sai3")),
        ("cannot read nowhere.yml", "", ("convert", "nowhere.yml")),
        ("cannot convert more than one file at a time", "", ("convert", "a", "b", "c")),
    ],
)
def test_mistakes_give_one_line_and_a_hint(
    call: Call, words: str, hint: str, arguments: tuple[str, ...]
) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert hint in err


@uses("feature cost")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("numbr = 3", "no command has a flag 'numbr'"),
        ("[wirte]\nmb = 1", "there is no command for the table 'wirte'"),
        ("[write]\nnumbr = 3", "[write] has no flag 'numbr'"),
    ],
)
def test_unknown_names_in_the_users_defaults_are_refused(
    call: Call, tmp_path: Path, settings: str, says: str
) -> None:
    (tmp_path / "sbench.toml").write_text(settings)
    code, _, err = call("--config", "sbench.toml", "plan", "write", "--number", "1")
    assert code == 2
    assert says in err


@uses(*RIGS)
def test_defaults_for_other_commands_are_no_mistake(call: Call, tmp_path: Path) -> None:
    # Shared flags, a flag of one command, a flag of a command in a group, and old names.
    settings = (
        'bucket_name = "b"\npart_size = "8MiB"\nblocks = 6\nrepeats = 3\n[clean]\n[lambda-host]\n'
    )
    (tmp_path / "sbench.toml").write_text(settings)
    assert call("--config", "sbench.toml", "plan", "write", "--number", "1")[0] == 0


@uses("feature history")
def test_defaults_reach_the_commands_of_a_group(call: Call, tmp_path: Path) -> None:
    (tmp_path / "ci.toml").write_text('[history]\nhistory = "kept"\ntolerance = "3%"\n')
    code, _, err = call("--config", "ci.toml", "history", "ls")
    assert (code, "there is no history in kept" in err) == (8, True), err


@uses("feature cost", "workload array", "workload mixed", "feature barrier")
@pytest.mark.parametrize(
    "words",
    [
        ("mixed", "--number", "1000", "--duration", "60", "--sizes", "loguniform:4KiB:1MiB"),
        ("mixed", "--number", "1000", "--operations", "50", "--mb", "1", "--barrier", "0.9"),
        ("write", "--number", "1000", "--size", "1MiB", "--duration", "60", "--rate", "500"),
        ("write", "--number", "1000", "--sizes", "uniform:1MiB:3MiB", "--threads", "2"),
        ("array", "write", "--number", "1000", "--shape", "1024,1024", "--chunks", "256,256"),
    ],
)
def test_any_workload_can_be_planned(call: Call, words: tuple[str, ...]) -> None:
    code, out, err = call("plan", "--quota", "400", "--format", "json", *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["functions"], found["concurrency"]) == (1000, 400)
    assert 0 < found["total"] < found["at_most"]["total"]
    assert found["at_most"]["concurrent"] == pytest.approx(0.4 * found["at_most"]["total"])
    usage = found["expected"]["usage"]
    assert usage["puts"] > 0
    assert found["expected"]["bytes"] > 0
    text = call("plan", *words)[1]
    assert "expected" in text
    idle = "1 of 2 in each function, which has fewer objects than threads"
    assert (idle in text) == (found["idle_threads"] == 1) == ("--threads" in words)
    assert "run to the 900 s deadline" in text


@uses("feature cost")
def test_a_plan_of_an_open_loop_has_the_operations_that_are_due(call: Call) -> None:
    words = ("write", "--number", "10", "--size", "1MiB", "--duration", "60", "--rate", "100")
    found = json.loads(call("plan", "--format", "json", *words)[1])
    assert found["expected"]["usage"]["puts"] == 6000
    assert call("plan", "wirte")[0] == 2
    assert "did you mean write?" in call("plan", "wirte")[2]


@uses("feature aws")
@pytest.mark.parametrize("command", ["write", pytest.param("plan", marks=uses("feature cost"))])
def test_help_spells_choices_as_files_do(call: Call, command: str) -> None:
    assert (
        "--arch [arm64|x86_64]"
        in call(command, "--help-all" if command == "write" else "--help")[1]
    )


HERE = Target(bucket="sbench", endpoint_url="http://127.0.0.1:8333", store="seaweedfs")


@each_row(
    ("name", "url", "by_service", "ok"),
    [
        ("AWS_ENDPOINT_URL", "http://minio:9000", False, False),
        ("AWS_ENDPOINT_URL_S3", "http://minio:9000", True, False),
        # `sbench store start` prints this value, and a Lambda host has an endpoint, too.
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:8333/", False, True),
        ("AWS_ENDPOINT_URL", "http://lambda:9000", True, True),
        ("AWS_ENDPOINT_URL_LAMBDA", "http://lambda:9000", False, True),
    ],
)
def test_the_embedded_store_is_not_measured_in_place_of_another(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str, *, by_service: bool, ok: bool
) -> None:
    monkeypatch.setenv(name, url)
    check_meant(replace(HERE, store=None), by_service=by_service)
    if ok:
        check_meant(HERE, by_service=by_service)
        return
    with pytest.raises(UsageError, match=f"{name} names {url}") as caught:
        check_meant(HERE, by_service=by_service)
    assert "`bucket` B" in caught.value.hint
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    check_meant(HERE, by_service=by_service)


def test_a_password_in_an_endpoint_of_the_environment_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter2@store")
    with pytest.raises(UsageError, match="contains a user or a password") as caught:
        check_meant(HERE)
    assert "hunter2" not in str(caught.value)
