import subprocess
import sys

import pytest

import serverless_bench

HEAVY = {"click", "cloudpickle", "lithops", "matplotlib", "numpy", "orjson", "pandas", "rich"}


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "module",
    [
        "serverless_bench.body",
        "serverless_bench.clients.wire",
        "serverless_bench.clients.boto3",
        "serverless_bench.clients.minio",
        "serverless_bench.clients.obstore",
        "serverless_bench.executors.zygote",
    ],
)
def test_what_runs_in_a_function_is_light(module: str) -> None:
    assert modules_after(f"import {module}").isdisjoint(HEAVY)


def test_the_body_does_without_any_storage_library_until_it_needs_one() -> None:
    assert modules_after("import serverless_bench.body").isdisjoint({"boto3", "botocore"})


def test_help_loads_no_arrays() -> None:
    argv = "import sys; sys.argv = ['sbench', '--help']\n"
    run = "from serverless_bench.cli.main import main\nmain()"
    assert modules_after(argv + run).isdisjoint({"numpy", "pandas", "matplotlib", "botocore"})


def test_a_report_loads_no_client_and_no_plots() -> None:
    seen = modules_after("import serverless_bench.cli.report")
    assert seen.isdisjoint({"botocore", "boto3", "lithops", "matplotlib", "pandas"})


def test_public_names_are_there() -> None:
    for name in serverless_bench.__all__:
        assert getattr(serverless_bench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        serverless_bench.nope  # noqa: B018
