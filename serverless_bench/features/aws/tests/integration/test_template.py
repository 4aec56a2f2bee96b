"""The stack as SAM sees it, and the zip file that it would upload."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.stack.folder import write_folder
from serverless_bench.features.aws.stack.template import (
    ARCHITECTURES,
    DEFAULT_ARCHITECTURES,
    DEFAULT_MEMORY,
    DEFAULT_RUNTIME,
    RUNTIMES,
    THIN,
    template,
)
from serverless_bench.job.abilities import ThroughLibrary
from serverless_bench.job.workload import WORKLOADS, open_workload
from tests.clouds.sam import ROOT, SAM, body, build, clone, sam
from tests.clouds.stack_options import CASES, made, name_of, parameters, with_defaults
from tests.clouds.template import WORKER, Template
from tests.combinations.covering import Case

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/aws", "samconfig.toml", "template.yaml"
)
OF_THE_ZIP = pytest.mark.on_change(
    # SAM puts them into it.
    "serverless_bench/features/remote",
    "serverless_bench/clients",
    "serverless_bench/job",
    "serverless_bench/payload",
    "serverless_bench/base",
    "serverless_bench/worker",
    "serverless_bench/workloads",
)

HEAVY = {"boto3", "click", "cloudpickle", "lithops", "numpy", "orjson", "pandas", "rich"}
OTHER_RUNTIMES = [runtime for runtime in RUNTIMES if runtime != DEFAULT_RUNTIME]
PLATFORMS = [(runtime, arch) for runtime in RUNTIMES for arch in ARCHITECTURES]
OFFLINE = {"UV_PYTHON_DOWNLOADS": "never"}
"""The Python that compiles is not fetched for a test."""
PACKED = sorted(
    WORKLOADS.builtin[name].partition(":")[0].removeprefix("serverless_bench.")
    for name in WORKLOADS
    if not isinstance(open_workload(name), ThroughLibrary)
)
"""Modules of the workloads that a stack's functions have."""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of `sam build` for the function of a written stack."""
    (code,) = build(tmp_path_factory.mktemp("sam"), *DEFAULT_MEMORY).glob("Worker*")
    return code


def imported(code: Path, statement: str) -> tuple[set[str], float]:
    """Return the modules after a statement, and the milliseconds that it took.

    Only ``code`` and the standard library are available, as in Lambda.
    """
    script = (
        f"import sys, time; sys.path.insert(0, {str(code)!r}); began = time.perf_counter()\n"
        f"{statement}\n"
        "import json; took = (time.perf_counter() - began) * 1000\n"
        "print(json.dumps([sorted(sys.modules), took]))"
    )
    command = [sys.executable, "-I", "-S", "-B", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules, took = json.loads(done.stdout)
    return set(modules), took


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(template([128, 10_240], ["x86_64", "arm64"], copies=3), id="many"),
        *(pytest.param(template(runtime=runtime), id=runtime) for runtime in OTHER_RUNTIMES),
        pytest.param((ROOT / "template.yaml").read_text(), id="clone"),
    ],
)
def test_sam_and_its_linter_find_no_fault(tmp_path: Path, text: str) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(text)
    assert "is a valid SAM Template" in sam(tmp_path, "validate", "--lint", "--template", path)


def test_the_linter_finds_no_fault_in_any_pair_of_options(tmp_path: Path) -> None:
    """Each with the values of its case for defaults."""
    paths = [tmp_path / f"{number}.yaml" for number, _ in enumerate(CASES)]
    for path, case in zip(paths, CASES, strict=True):
        path.write_text(with_defaults(case))
    lint: list[str | Path] = [SAM.with_name("cfn-lint"), "--regions", "eu-west-1", "--", *paths]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


BUILT = max(CASES, key=lambda case: len(parameters(case)))
"""The case that sets most parameters; by the next test, the builds of the others cannot differ."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(number), marks=() if case == BUILT else pytest.mark.full)
        for number, case in enumerate(CASES)
    ],
)
def test_options_do_not_change_the_build(case: Case, code: Path, tmp_path: Path) -> None:
    stack = tmp_path / "stack"
    write_folder(stack, with_defaults({**case, "functions": "one", "runtime": DEFAULT_RUNTIME}))
    assert "Build Succeeded" in sam(stack, "build", environment=OFFLINE)
    assert sources(stack / ".aws-sam" / "build" / WORKER) == sources(code)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_option_is_in_what_a_build_is_made_of(case: Case) -> None:
    usual, stack = Template(), made({**case, "functions": "one", "runtime": DEFAULT_RUNTIME})
    assert stack.resources[WORKER]["Metadata"] == usual.resources[WORKER]["Metadata"]
    for name in ("CodeUri", "Runtime", "Architectures"):
        assert stack.functions[WORKER][name] == usual.functions[WORKER][name]


@OF_THE_ZIP
def test_the_zip_is_small(code: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "code.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in code.rglob("*"):
            archive.write(path, path.relative_to(code))
    size = (tmp_path / "code.zip").stat().st_size
    unzipped = sum(path.stat().st_size for path in code.rglob("*") if path.is_file())
    print(f"zip {size / 1e6:.2f} MB, unzipped {unzipped / 1e6:.1f} MB")  # noqa: T201
    assert size < 8e6
    assert unzipped < 30e6


@OF_THE_ZIP
def test_the_zip_has_the_dependencies_of_the_function(code: Path) -> None:
    there = {path.name for path in code.iterdir()} - {"__pycache__"}
    backend = next(name for name in there if name.startswith("_cffi_backend"))
    assert there - {backend} == {
        *("botocore", "cloudpickle", "cryptography", "dateutil", "jmespath"),
        *("serverless_bench", "six.py", "urllib3"),
    }
    ours = {
        str(p.relative_to(code / "serverless_bench"))
        for p in code.rglob("serverless_bench/**/*.py")
    }
    assert {
        "features/remote/handler.py",
        "worker/invocation.py",
        "clients/wire/__init__.py",
    } <= ours
    assert {f"{place.replace('.', '/')}.py" for place in PACKED} <= ours
    # They are loaded by their names.
    assert {"features/express/session.py", "features/hedging/race.py"} <= ours
    assert not [name for name in ours if "tests" in name.split("/")]
    # It needs boto3, which is not in the zip.
    assert "boto3" in CLIENTS
    assert "clients/boto3.py" not in ours
    assert not any(name.startswith(("cli/", "executors/", "lambda_host/")) for name in ours)


def test_the_zip_has_bytecode_that_is_not_checked(code: Path) -> None:
    sources = [*code.rglob("*.py")]
    compiled = {path.name.split(".")[0]: path for path in code.rglob("*.pyc")}
    assert len([*code.rglob("*.pyc")]) == len(sources)
    # PEP 552: the second word is 1 for "unchecked hash".
    assert compiled["handler"].read_bytes()[4:8] == (1).to_bytes(4, "little")


@OF_THE_ZIP
def test_the_handler_is_importable_and_light(code: Path) -> None:
    module = "serverless_bench.features.remote.handler"
    statement = f"import {module}; {module}.handler"
    modules, took = imported(code, statement)
    print(f"import of the handler: {took:.0f} ms, {len(modules)} modules")  # noqa: T201
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)


@OF_THE_ZIP
def test_every_plugin_of_the_zip_is_importable(code: Path) -> None:
    plugins = ["clients.wire", *PACKED]
    lines = [f"import serverless_bench.{name}" for name in plugins]
    modules, _ = imported(code, "\n".join(lines))
    assert {f"serverless_bench.{name}" for name in plugins} <= modules


def test_a_clone_can_be_built_as_it_is(code: Path, tmp_path: Path) -> None:
    root = clone(tmp_path / "clone")
    assert "Build Succeeded" in sam(root, "build", environment=OFFLINE)
    made = root / ".aws-sam" / "build" / WORKER
    check_platform(made, DEFAULT_RUNTIME, *DEFAULT_ARCHITECTURES)
    # Its functions have the same sources as those of a written stack, which is tested above.
    assert sources(made) == sources(code)
    # The build leaves only files in the clone that git ignores.
    assert not [*root.rglob("__pycache__")]


def sources(code: Path) -> dict[Path, bytes]:
    """Return our own modules in a function's folder, by path."""
    ours = (code / "serverless_bench").rglob("*.py")
    return {path.relative_to(code): path.read_bytes() for path in ours}


@pytest.mark.parametrize(
    ("runtime", "architecture"),
    [one for one in PLATFORMS if one != (DEFAULT_RUNTIME, *DEFAULT_ARCHITECTURES)],
)
def test_it_can_be_built_for_every_other_platform(
    runtime: str, architecture: str, tmp_path: Path
) -> None:
    check_platform(body(tmp_path, THIN, runtime, architecture), runtime, architecture)


def check_platform(made: Path, runtime: str, architecture: str) -> None:
    """Assert that the libraries of a function are for its Python and its architecture."""
    version = runtime.removeprefix("python").replace(".", "")
    machine = {"arm64": "aarch64"}.get(architecture, architecture)
    (backend,) = made.glob("_cffi_backend*")
    assert backend.name == f"_cffi_backend.cpython-{version}-{machine}-linux-gnu.so"
    (rust,) = made.rglob("_rust.abi3.so")
    # ELF header, e_machine: 0xB7 is AArch64, 0x3E is x86-64.
    assert rust.read_bytes()[18] == {"aarch64": 0xB7, "x86_64": 0x3E}[machine]
