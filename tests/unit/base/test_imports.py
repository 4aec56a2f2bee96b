import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import serverless_bench
from serverless_bench.cli.main import command_names
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from tests.data import runs
from tests.house.members import EVERY_WORKLOAD, RIGS, uses
from tests.unit.cli.test_wrong_values import WRONG

HEAVY = {
    *("click", "cloudpickle", "lithops", "vl_convert", "msgspec", "numpy", "orjson", "pandas"),
    "rich",
}


def all_modules_after(statement: str, directory: Path | None = None) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def modules_after(statement: str, directory: Path | None = None) -> set[str]:
    return {name.partition(".")[0] for name in all_modules_after(statement, directory)}


@pytest.mark.parametrize(
    "module",
    [
        "serverless_bench.worker.invocation",
        *(value.partition(":")[0] for value in CLIENTS.builtin.values()),
        "serverless_bench.executors.local_workers",
    ],
)
def test_code_in_a_function_is_light(module: str) -> None:
    assert modules_after(f"import {module}").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_executor_describes_itself_without_its_library(name: str) -> None:
    asked = f"from serverless_bench.executors import info_of\ninfo_of({name!r})"
    libraries = {"boto3", "cloudpickle", "dask", "distributed", "lithops", "numpy"}
    assert modules_after(asked).isdisjoint(libraries)


OPENED = """
import os
os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
import serverless_bench.features.remote.handler
from serverless_bench import Target, Transfer
from serverless_bench.clients import open_client
open_client(Target(bucket="b", endpoint_url="http://127.0.0.1:1"), Transfer())
"""


@uses("feature remote")
def test_a_function_that_uses_the_thin_client_loads_no_storage_library() -> None:
    assert modules_after(OPENED).isdisjoint({"boto3", "botocore"})


FOR_WORK = {
    *("aiohttp", "awscrt", "boto3", "botocore.session", "lithops", "vl_convert", "msgspec"),
    *("numpy", "pandas", "rich", "scipy", "urllib3"),
}
"""Modules that a command loads when it works, beyond those for its flags."""

HELP = """
import io, json, sys
from serverless_bench.cli.main import main
loaded, out, sys.stdout = {}, sys.stdout, io.StringIO()
for command in json.loads(sys.argv[1]):
    before = set(sys.modules)
    assert main([*command, "--help"]) == 0
    loaded[" ".join(command)] = sorted(set(sys.modules) - before)
out.write(json.dumps(loaded))
"""


def test_help_waits_for_no_library() -> None:
    # One process for all: each command only shows modules that those before it had not loaded.
    commands = [[], *([name] for name in command_names())]
    command = [sys.executable, "-c", HELP, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert len(loaded) == len(command_names()) + 1
    assert {name: FOR_WORK & set(modules) for name, modules in loaded.items()} == {
        name: set() for name in loaded
    }


REFUSED = """
import importlib, json, os, sys
from serverless_bench.cli.main import main
for words, folder, variables in json.load(sys.stdin):
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with os.fdopen(reading) as answer:
            said = answer.read()
        assert os.waitpid(child, 0)[1] == 0
        print(said, flush=True)
        # The next one finds these loaded: a banned module is in the answer of whoever loads it.
        for name in json.loads(said)[1:]:
            if name.startswith("serverless_bench."):
                importlib.import_module(name)
        continue
    os.chdir(folder)
    os.environ |= variables
    code = main(words)
    os.write(writing, json.dumps([code, *sys.modules]).encode())
    os._exit(0)
"""
REFUSING_NEEDS_NONE = {
    *("asyncio", "botocore", "cryptography", "socketserver", "subprocess", "urllib.request"),
    *("serverless_bench.base.parent_keys", "serverless_bench.stores.embedded"),
}
"""Further modules that no refusal loads, even where all commands say what flags they have."""
MORE_REFUSALS = (
    "ab no-file no-file",
    "array write --shape 1xx",
    "call no-file",
    "clean no-run",
    "compare no-run no-run",
    "study report nothing",
    "study run",
    "study run --nope",
    "study run nothing",
    "study show nothing",
    "history check no-run",
    "history ls",
    "limit --p99 abc",
    "limit write --over nothing",
    "mixed --mix nothing",
    "plan write --number x",
    "plot no-run",
    "read --key-file no-file",
    "run no-file",
    "scale --numbers x",
    "scale write --number 0",
    "store nothing",
    "worker --nope",
    "write --bucket !!",
    "write --name saved",
)
NEED_LIBRARIES = {
    # The client of that cloud and the environment know whether there is an account.
    "write --bucket az://container",
    # A client declares beside its library whether it hedges.
    "read --key k --hedge 50ms --client boto3",
    # The objective of a search knows what it can hold.
    "limit write --p99 0",
    # NumPy knows the types of elements, and an executor its addresses.
    "array write --dtype foo",
    "array write --shape 10,10 --chunks 20",
    "write --executor dask --scheduler nohost",
    # NumPy holds what files of other tools say.
    "import g.csv",
}


def refusals(folder: Path) -> dict[str, tuple[list[str], str, dict[str, str]]]:
    """Return commands with a wrong value, with their folder and their variables."""
    cases: dict[str, tuple[list[str], str, dict[str, str]]] = {}
    for number, case in enumerate(WRONG):
        place, text = folder / str(number), case.get("text", "").strip()
        place.mkdir()
        if "file" in case:
            (place / case["file"]).write_text(case["text"])
        of_file = text if case.get("file") == "sbench.toml" else ""
        name = " ".join(filter(None, [case["command"], case.get("variable"), of_file]))
        variables = dict([case["variable"].split("=", 1)]) if "variable" in case else {}
        if case.get("file") == "sbench.toml":
            variables["SBENCH_CONFIG"] = "sbench.toml"
        name += f" {number}" if name in cases else ""
        cases[name] = shlex.split(case["command"]), str(place), variables
    runs.saved(folder / "sbench-runs" / "saved", [runs.outcome(runs.record(0, []))])
    return cases | {words: (words.split(), str(folder), {}) for words in MORE_REFUSALS}


@uses(*EVERY_WORKLOAD, "client wire", "executor lambda", *RIGS, "feature plot", "feature studies")
def test_a_refusal_waits_for_no_library(tmp_path: Path) -> None:
    cases = {n: case for n, case in refusals(tmp_path).items() if n not in NEED_LIBRARIES}
    assert len(cases) == len(WRONG) + len(MORE_REFUSALS) - len(NEED_LIBRARIES)
    command = [sys.executable, "-c", REFUSED]
    done = subprocess.run(
        command, input=json.dumps([*cases.values()]), capture_output=True, text=True, check=True
    )
    refused = dict(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))
    # Except for the modules that define types of flags.
    banned = (FOR_WORK | REFUSING_NEEDS_NONE) - {"msgspec"}
    assert {name: banned.intersection(document[1:]) for name, document in refused.items()} == {
        name: set() for name in refused
    }
    assert {document[0] for document in refused.values()} == {2, 3, 8}


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (("report", "DIR"), set()),
        (("report", "DIR", "--format", "json"), set()),
        pytest.param(("check", "DIR", "--format", "json"), set(), marks=uses("feature check")),
        pytest.param(
            ("export", "DIR", "--format", "csv", "--output", "csv"),
            {"pandas"},
            marks=uses("feature formats"),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_saved_run_is_read_without_the_code_that_makes_runs(
    tmp_path: Path, command: tuple[str, ...], more: set[str]
) -> None:
    run = runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))])
    arguments = [str(run.path) if word == "DIR" else word for word in command]
    code = f"import os; os.chdir({str(tmp_path)!r})\n"
    code += f"from serverless_bench.cli.main import main\nassert main({arguments}) == 0"
    # The contents of a directory are validated with msgspec before use.
    assert modules_after(code) & (FOR_WORK | {"botocore"}) <= {"msgspec", "numpy"} | more


@pytest.mark.parametrize(
    ("words", "needless"),
    [
        # The second list uses the rows that the first one saved.
        (("ls",), {"msgspec", "numpy", "orjson"}),
        (("study", "ls"), {"msgspec", "numpy", "secrets", "serverless_bench.executors.base"}),
        (("report", "sbench-runs/0"), {"http", "numpy.ma"}),
        (("check", "sbench-runs/0"), {"numpy.ma", "serverless_bench.features.cost.bill"}),
        (("compare", "sbench-runs", "sbench-runs/0"), {"numpy.ma"}),
        (("plan", "write"), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_command_loads_no_modules_of_other_commands(
    words: tuple[str, ...], needless: set[str], tmp_path: Path
) -> None:
    for number in range(2):
        done = runs.outcome(runs.record(0, [runs.operation()]))
        runs.saved(tmp_path / "sbench-runs" / str(number), [done])
    code = f"from serverless_bench.cli.main import main\nmain({[*words]})"
    all_modules_after(code, tmp_path)
    loaded = all_modules_after(code, tmp_path)
    assert loaded.isdisjoint({"botocore", "pandas", "rich", "scipy", "vl_convert"} | needless)


@pytest.mark.parametrize(
    ("command", "needless"),
    [
        # Loaded before the check. The list has commands of other packages, and their entry points
        # need pathlib.
        (
            (),
            {
                *("difflib", "secrets", "serverless_bench.cli.flags.defaults", "tomllib"),
                *(
                    "serverless_bench.features.loopback.command",
                    "serverless_bench.features.studies.commands.study",
                ),
            },
        ),
        (
            ("write",),
            {
                *("hashlib", "secrets", "tomllib", "traceback"),
                *("serverless_bench.clients.base", "serverless_bench.executors.base"),
                *("serverless_bench.job.spec", "serverless_bench.rundir.record"),
            },
        ),
    ],
    ids=["sbench", "write"],
)
def test_help_only_loads_declarations_of_flags(
    command: tuple[str, ...], needless: set[str]
) -> None:
    code = f"from serverless_bench.cli.main import main\nassert main({[*command, '--help']}) == 0"
    assert all_modules_after(code).isdisjoint(needless)


def test_a_report_without_a_bill_loads_no_prices_and_opens_no_connection(tmp_path: Path) -> None:
    run = runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))])
    code = "from serverless_bench.cli.main import main\n"
    code += f"assert main(['report', {str(run.path)!r}]) == 0"
    seen = all_modules_after(code)
    # The part decides that there is no bill.
    cost = {name for name in seen if name.startswith("serverless_bench.features.cost")}
    assert cost <= {"serverless_bench.features.cost", "serverless_bench.features.cost.part"}
    # Except for the digests of its files.
    assert seen.isdisjoint({"secrets", "socket", "email", "tomllib"})


def test_numpy_starts_no_threads_in_a_command_but_may_in_its_children() -> None:
    code = (
        "import os, sys\nfrom serverless_bench.cli.process import load_numpy\nload_numpy()\n"
        "assert 'numpy' in sys.modules and 'OPENBLAS_NUM_THREADS' not in os.environ\n"
        "assert sys.platform != 'linux' or len(os.listdir('/proc/self/task')) == 1"
    )
    assert "numpy" in modules_after(code)


def test_a_run_on_a_store_waits_for_no_plots_and_no_statistics() -> None:
    seen = modules_after("import serverless_bench.driver.run, serverless_bench.cli.job")
    assert seen.isdisjoint({"aiohttp", "boto3", "scipy", "vl_convert", "pandas", "rich"})


def test_public_names_are_there() -> None:
    for name in serverless_bench.__all__:
        assert getattr(serverless_bench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        serverless_bench.nope  # noqa: B018
