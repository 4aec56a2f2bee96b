"""Settings of a job: the same names everywhere, checked types, and the resulting values."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.make_settings import rows, table
from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.cli.flags.after_run import AFTER_RUN
from serverless_bench.cli.flags.options import as_flag, spell
from serverless_bench.cli.job import Output
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.driver.checked_job import check_job
from serverless_bench.job.abilities import UNTIMED, Untimed
from serverless_bench.job.meaning import declared_for, declared_in, declared_options
from serverless_bench.job.settings import JobSettings, declared, make_settings, setting_names
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Stat, Target, Transfer, Verify
from serverless_bench.job.workload import OWN_FUNCTION, WORKLOADS, load_fields, open_workload
from tests.commands.command import Call
from tests.data.access_logs import NO_REQUEST
from tests.house.members import EVERY_WORKLOAD, uses
from tests.tables import each_row

KIB, MIB = 1 << 10, 1 << 20
COMMANDS = {name: open_command(name) for name in WORKLOADS if name in ALL_COMMANDS}


def job_of(**settings: Any) -> JobSpec:
    return check_job({"workload": "write", **settings}).job


def refused(*, keys: list[str] | None = None, **settings: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        check_job({"workload": "write", **settings}, keys)
    assert "--" not in str(caught.value), "flags are the command line's"
    return caught.value


@each_row("workload", COMMANDS)
def test_every_flag_of_a_command_is_a_setting_or_decides_what_becomes_of_its_run(
    workload: str,
) -> None:
    flags = {str(parameter.name) for parameter in COMMANDS[workload].params}
    settings = set(setting_names(workload))
    of_reading = {"from", "trust"}
    assert flags - {*Output.__slots__, *AFTER_RUN} - of_reading <= settings
    # A job file that has one of these is refused with the reason.
    assert settings - flags == (
        {*UNTIMED} if isinstance(open_workload(workload), Untimed) else set()
    )


@each_row("workload", COMMANDS)
def test_flags_and_settings_have_the_same_defaults(workload: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "array": {"operation": "write"},
        "conditional": {"operations": 1},
        "mixed": {"operations": 1},
        "read": {"key": "k"},
        "replay": {"log": NO_REQUEST},
        OWN_FUNCTION: {"code": "3.11:x"},
    }
    needed = {"workload": workload, "name": "j", **more.get(workload, {})}
    command = COMMANDS[workload]
    arguments = [
        {"operation": "write", "code": "f.py:f", "log": "f"}[name] for name in positional(command)
    ]
    flags = command.make_context("sbench", arguments).params
    from_flags = {name: flags[name] for name in setting_names(workload) if name in flags}
    assert check_job({**from_flags, **needed}).job == check_job(needed).job


@uses(*EVERY_WORKLOAD)
def test_the_table_has_all_settings() -> None:
    _, *shown = rows()
    assert [row[0] for row in shown] == [f"`{name}`" for name in declared()]
    assert all(what and kind for _, kind, *_, what in shown)
    assert table().count("\n") == len(shown) + 2


def positional(command: click.Command) -> list[str]:
    return [str(each.name) for each in command.params if isinstance(each, click.Argument)]


def test_fields_of_a_specification_are_called_as_settings() -> None:
    apart = {"target", "control", "transfer", "load", "endpoints", "protocol", "store", "array"}
    apart |= {"uses_kms", "options", "total", "parts", "listers"}
    loads = (open_workload(name).load_type for name in WORKLOADS)
    kinds: tuple[type, ...] = (JobSpec, Target, Transfer, *loads)
    names = {field.name for kind in kinds for field in fields(kind)}
    assert names - apart <= declared().keys()
    # An array is a specification of its own.
    of_arrays = declared_for("array") if "array" in WORKLOADS else ()
    of_replays = {"max_gap", "secret_file"}
    apart = {"key", "key_file", *declared_options(), *of_arrays, *of_replays}
    assert declared().keys() - names - apart == {"create_bucket", "mb"}
    settings = {
        "number": 3,
        "size": 4096,
        "part_size": "8MiB",
        "block_size": 64 * KIB,
        "deadline": 60,
        "rate": 2,
        "warm_up": 1,
        "start-timeout": 5,
    }
    job = job_of(name="j", **settings)
    assert (job.number, job.size, job.warm_up) == (3, 4096, 1)
    assert (job.transfer.part_size, job.transfer.block_size) == (8 * MIB, 64 * KIB)
    assert (job.deadline, job.load.rate, job.options) == (60.0, 2.0, {"start_timeout": 5.0})
    assert job == job_of(name="j", **{**settings, "size": "4096", "part_size": 8 * MIB})


@given(size=st.integers(5 * MIB, 5 << 30), block=st.integers(KIB, 1 << 30))
def test_bytes_are_kept_to_the_last_one(size: int, block: int) -> None:
    transfer = job_of(part_size=size, size=size, block_size=block).transfer
    assert (transfer.part_size, transfer.block_size) == (size, block)


def test_options_may_be_texts_or_a_table() -> None:
    texts = job_of(client_option=["payload_signing=sha256"]).target.client_option
    assert texts == job_of(client_option="payload_signing=sha256").target.client_option
    assert texts == job_of(client_option={"payload_signing": "sha256"}).target.client_option
    assert texts == (("payload_signing", "sha256"),)


@uses("workload array", "workload mixed")
def test_shapes_and_mixes_may_be_texts_or_data() -> None:
    array = {"workload": "array", "operation": "write", "name": "j"}
    assert job_of(**array, shape="512,1024") == job_of(**array, shape=[512, 1024])
    mixed = {"workload": "mixed", "operations": 1, "name": "j"}
    assert job_of(**mixed, mix="get=2,put=1") == job_of(**mixed, mix={"get": 2, "put": 1.0})


@uses("workload read")
def test_a_read_takes_as_many_functions_as_its_keys_need() -> None:
    keys = [f"k{number}" for number in range(7)]
    for given_, functions in (({}, 7), ({"number": 0}, 7), ({"objects": 3}, 3), ({"number": 2}, 2)):
        found = check_job({"workload": "read", **given_}, keys)
        assert (found.job.number, found.keys) == (functions, keys)


@uses("workload array", "workload custom", "workload mixed", "workload read")
@each_row(
    ("settings", "workload", "count", "mean"),
    [
        ({"number": 3, "objects": 2, "mb": 1}, "write", 6, MIB),
        ({"number": 3, "sizes": "uniform:1MiB:3MiB"}, "write", 3, 2 * MIB),
        ({"number": 2, "objects": 8, "size": "1KiB", "operations": 1}, "mixed", 32, KIB),
        ({"key": "k"}, "read", 0, 0),
        ({"operation": "append", "shape": "1024,1024", "number": 2}, "array", 2, 4 * MIB),
        ({"code": "3.11:x"}, OWN_FUNCTION, 0, 0),
        ({"code": "3.11:x", "number": 5, "mb": 2}, OWN_FUNCTION, 5, 2 * MIB),
    ],
)
def test_the_required_space_of_a_job_is_known(
    settings: dict[str, Any], workload: str, count: int, mean: int
) -> None:
    assert check_job({"workload": workload, **settings}).new_objects() == (count, mean)


@uses("workload shuffle", "workload replay")
def test_partitions_and_replayed_objects_need_space(call: Call, tmp_path: Path) -> None:
    """The embedded store would fill the disk."""
    log = tmp_path / "log.csv"
    log.write_text("time,op,key,size\n0,put,a,100\n0,put,b,50000000000000\n1,get,c,300\n")
    shape = ("--shape", "8192000,8192000", "--chunks", "32768,32768")
    for words, count in (
        (("shuffle", "--mappers", "2", "--reducers", "2", "--size", "40TiB"), "4 objects"),
        (("replay", str(log), "--number", "1"), "3 objects"),
        (("array", "write", *shape, "--path", str(tmp_path / "arrays")), "1 arrays"),
    ):
        code, out, err = call(*words, "--executor", "inline")
        assert (code, out) == (2, "")
        assert f"sbench: {count} of " in err
        assert ("arrays" if words[0] == "array" else "the embedded store") + " has room for" in err
    ranges = {"workload": "shuffle", "partitions": "ranges", "size": 1000}
    assert check_job(ranges).new_objects() == (4, 250)


@uses("workload array", "workload read")
@pytest.mark.parametrize(("workload", "more"), [("read", {}), ("array", {"operation": "read"})])
def test_all_keys_are_read(workload: str, more: dict[str, str], tmp_path: Path) -> None:
    keys = [f"{number:032x}.{4 * MIB}" for number in range(3)]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
    named = {"key_file": str(tmp_path / "keys"), **more}
    if more:
        named |= {"shape": "1024,1024", "chunks": "512,512"}
    assert job_of(workload=workload, **named).number == 3


@uses("client minio")
@pytest.mark.parametrize("bucket", ["b", "a..b", "1.2.3.4", "mine--ol-s3"])
def test_a_bucket_that_the_library_sends_no_request_for_is_refused(bucket: str) -> None:
    where: dict[str, Any] = {"bucket": bucket, "endpoint_url": "http://store", "mb": 1}
    assert job_of(**where).target.client == "wire"
    assert job_of(**{**where, "bucket": "bkt"}, client="minio").target.bucket == "bkt"
    words = ""
    try:
        job_of(**where, client="minio")
    except UsageError as exc:
        words = str(exc)
    assert words == f"`client` minio sends no request for a bucket named {bucket!r}"


@uses("workload array", "workload read")
@each_row(
    ("settings", "field", "words"),
    [
        ({"number": "many"}, "number", "must be a whole number, got 'many'"),
        ({"number": True}, "number", "must be a whole number, got True"),
        ({"number": 0}, "number", "must be at least 1, got 0"),
        ({"invocations": 1}, "invocations", "has no setting 'invocations'"),
        ({"part_size": "16"}, "part_size", "must be between 1 KiB and 5 GiB, got 16 B"),
        ({"block_size": "64 kilo"}, "block_size", "'64 kilo' is not a size"),
        ({"duration": "x"}, "duration", "is not a duration"),
        ({"client": 3}, "client", "must be text"),
        ({"verify": "maybe"}, "verify", "must be one of full, sample, none"),
        ({"arrivals": "random"}, "arrivals", "must be one of uniform, poisson"),
        ({"client_option": 3}, "client_option", "must be text or a list of text or a table"),
        ({"part_size": "4MiB"}, "part_size", "must be between 5 MiB and 5 GiB, got 4 MiB"),
        ({"mix": "get=1"}, "mix", "the workload write has no setting 'mix'"),
        ({"numbr": 1}, "numbr", "has no setting 'numbr'"),
        ({"start_timeout": 1.0, "start-timeout": 1.0}, "start_timeout", "is given twice"),
        ({"workload": "array"}, "operation", "is missing"),
        ({"workload": "read"}, "", "give `key_file` or `key`"),
        ({"workload": None}, "workload", "is missing"),
        ({"barrier": 2.0}, "barrier", "must be above 0 and at most 1"),
        ({"barrier": "95"}, "barrier", "'95' is not a share from 0% to 100%"),
        ({"sizes": "uniform:1"}, "sizes", "'uniform:1' has 1 sizes"),
        ({"network_rate": "20"}, "network_rate", "'20' is not a rate"),
        ({"name": "a/b"}, "name", "is not a plain name"),
        ({"stack": "s"}, "stack", "does not apply to `executor` local"),
        ({"size": "1MB", "mb": 1}, "", "`mb` and `size` give the size"),
    ],
)
def test_mistakes_name_their_setting(settings: dict[str, Any], field: str, words: str) -> None:
    error = refused(**settings)
    assert (error.field, words in str(error)) == (field, True), str(error)


def test_python_values_are_checked_like_those_of_files() -> None:
    made = JobSettings(workload="write", verify=Verify.NONE, stat="each")  # type: ignore[arg-type]
    assert made.stat is Stat.EACH
    assert made == make_settings({"workload": "write", "verify": "none", "stat": "each"})
    with pytest.raises(UsageError, match="`retries` must be a whole number"):
        JobSettings(workload="write", retries="4")  # type: ignore[arg-type]


def test_missing_plugins_are_distinguished_from_wrong_values() -> None:
    with pytest.raises(PluginError, match="unknown client 'nope'"):
        job_of(client="nope")


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("part_size", "--part-size"),
        ("number", "--number"),
        ("run_dir", "--run-dir"),
        ("sam", "`sam`"),
    ],
)
def test_the_command_line_calls_a_setting_by_its_flag(name: str, flag: str) -> None:
    error = UsageError(f"`{name}` is wrong", hint=f"leave `{name}` out")
    spell(error)
    assert (str(error), error.hint) == (f"{flag} is wrong", f"leave {flag} out")
    assert as_flag(name) == flag


@each_row("name", WORKLOADS)
def test_a_workload_has_the_settings_of_the_fields_that_mean_something_to_it(name: str) -> None:
    workload, own = open_workload(name), set(declared_for(name))
    # Composite settings, arrays at a rate, which only Python offers, and what follows from a size.
    apart = {"array", "rate", "arrivals"} if name == "array" else {"total", "parts", "listers"}
    settings = load_fields(workload) - apart
    assert settings <= {*workload.settings, *own}
    common = declared_in(JobSettings)
    assert all(common[setting].meaning.own for setting in workload.settings)
    assert not own & common.keys()
    every = {field.name for field in fields(workload.load_type)} - {"array", *apart}
    assert {*workload.settings, *own} & every == settings


@each_row("name", WORKLOADS)
def test_the_default_of_a_setting_is_that_of_the_load(name: str) -> None:
    usual = {field.name: field.default for field in fields(open_workload(name).load_type)}
    for setting, (_, default, meaning) in declared_for(name).items():
        if setting in usual:
            read = meaning.parse if isinstance(default, str) else None
            assert (default if read is None else read(default)) == usual[setting], setting


def test_none_stands_for_the_default_of_every_option() -> None:
    target = Target(bucket="b", endpoint_url="http://127.0.0.1:1")
    job = JobSpec(workload="write", target=target, number=1, size=1)
    assert job.with_options(**dict.fromkeys(declared_options())).options == {}
