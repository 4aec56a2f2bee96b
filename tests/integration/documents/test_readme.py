"""Every command of the README is run, in the order of the README.

First the commands for users who only have a wheel, in an empty virtual environment with an
otherwise empty PATH; then the others, in one shell, in a copy of this checkout. The commands in
``STANDS_IN``, which are not possible here or would take hours, are replaced.
"""

import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.aws.stack.folder import write_folder
from serverless_bench.features.loopback.server import serving
from tests.clouds.localstacks import running_localstack
from tests.clouds.sam import ARCHITECTURE, RUNTIME, SAM
from tests.data.pickles import tuples
from tests.distribution import is_for_a_clone
from tests.documents.quoted import BLOCK, ROOT, WHEEL
from tests.stores.servers import KEYS, Server, moto, rclone, versitygw

AT_STORE: Final = "at_store sbench write"
STANDS_IN: Final = {
    "make demo": "SBENCH_NUMBER=2 SBENCH_MB=1 make demo",  # more bytes were the wheel's
    "make test": "make --dry-run test",  # it would run this test again
    # For a store somewhere, and for any bucket on AWS: the loopback store.
    "sbench write --endpoint-url https://store.example:9000": f"{AT_STORE} --endpoint-url $STORE",
    # Fewer functions, bytes, operations and runs need the same commands.
    "--number 200 --mb 4": "--number 20 --mb 1",
    "--number 32 --mb 16": "--number 4 --mb 1",
    "--number 100 --mb 4": "--number 4 --mb 1",
    "--duration 5": "--duration 1",
    "--operations 50": "--operations 5",
    "sbench read    # what": "at_store sbench read  # what",
    "sbench write --bucket mine": f"{AT_STORE} --bucket mine",
    "sbench ab ": "verdict_of sbench ab --blocks 6 --warm-up-blocks 0 ",
    "sbench study run pywren-2016": "sbench study run pywren-2016 --run-duration 0.3 --repeats 1",
    # For a region of AWS: LocalStack, with functions on this machine's CPU and Python.
    "sbench aws stack": f"sbench aws stack --arch {ARCHITECTURE} --runtime {RUNTIME}",
    "--number 1800 --mb 2000": "--number 2 --mb 1",
    "sbench clean big": "age big && sbench clean big",
    "sam delete": "sam delete --no-prompts --region us-east-1",
}
"""Commands to run, by those of the README."""
AGE: Final = (
    "import pathlib, sys; from tests.data.runs import long_ago; long_ago(pathlib.Path(sys.argv[1]))"
)
_KEYS: Final = " ".join(f"{name}={value}" for name, value in KEYS.items())
PRELUDE: Final = f"""
# Has a run be an hour old: `sbench clean` waits a minute for what may come late.
age() {{ {sys.executable} -c '{AGE}' "sbench-runs/$1"; }}
at_store() {{ {_KEYS} AWS_ENDPOINT_URL=$STORE "$@"; }}
# Whichever side is faster, and if so few and short runs cannot tell.
verdict_of() {{
    "$@" || case $? in {ExitCode.SLOWER} | {ExitCode.UNDECIDED}) ;; *) return 1 ;; esac
}}
"""
ON_AWS: Final = ("sam ", "--stack sbench", "big")
"""Text of lines that need the stack, for which LocalStack runs, in ``make full``."""
UV: Final = Path(sys.executable).with_name("uv")
LEFT_OUT: Final = frozenset({".aws-sam", ".git", ".hypothesis", "dist", "mutants", "sbench-runs"})


def lines(*, wheel: bool) -> list[str]:
    """Return the lines of the README to type: of the first block, or of all others."""
    found = BLOCK.findall((ROOT / "README.md").read_text())
    blocks = [block for kind, block in found if kind == "sh"]
    first, *others = blocks
    assert first.startswith(f"pip install {WHEEL}")
    # A clone's commands are only found after its own block.
    others.sort(key=lambda block: not block.startswith("make demo"))
    return "".join([first] if wheel else others).splitlines()


def is_on_aws(line: str) -> bool:
    return any(word in line for word in ON_AWS)


def replaced(line: str) -> str:
    for message, run in STANDS_IN.items():
        line = line.replace(message, run)
    return line


def shell(commands: list[str], directory: Path, environment: Mapping[str, str]) -> str:
    """Type commands into one shell, up to the first that fails, and return their output."""
    # Commands have no standard input, and `&&` must not hide a failure.
    typed = [f"echo '$' {line!r}\n{{ {line}\n}} </dev/null || exit" for line in commands]
    done = subprocess.run(
        ["/bin/bash", "-c", "\n".join([PRELUDE, *typed])],
        cwd=directory,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def wheel(scratch: Path) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(scratch)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return scratch / WHEEL


@pytest.fixture(scope="module")
def environment(scratch: Path) -> dict[str, str]:
    """Variables of a shell; the caches of installers are this user's."""
    ours = {"PYTHONPATH", "VIRTUAL_ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    # Most of the installed modules are never loaded here, so they are only compiled when loaded.
    ours_too = {"PIP_COMPILE": "0", "UV_COMPILE_BYTECODE": "0", "SAM_CLI_TELEMETRY": "0"}
    return {**kept, **ours_too, "SBENCH_STORE_DIR": str(scratch / "store")}


@pytest.fixture(scope="module")
def installed(wheel: Path, scratch: Path, environment: dict[str, str]) -> Path:
    """The commands of an environment into which the README's first line has installed the wheel."""
    home = scratch / "venv"
    venv.create(home, with_pip=True)
    shell(lines(wheel=True)[:1], wheel.parent, {**environment, "PATH": str(home / "bin")})
    return home / "bin"


@pytest.mark.parametrize(
    ("settings", "read"),
    [
        ({"SBENCH_NUMBER": "4", "SBENCH_MB": "16"}, "256 MiB"),
        pytest.param({}, "4 GiB", marks=pytest.mark.full),
    ],
    ids=["small", "as_it_is"],
)
def test_the_wheel_alone_is_enough_for_the_first_run(
    installed: Path,
    tmp_path: Path,
    environment: dict[str, str],
    settings: dict[str, str],
    read: str,
) -> None:
    own = {**environment, **settings, "PATH": str(installed)}
    message = shell(lines(wheel=True)[1:], tmp_path, own)
    assert re.search(rf"verified +{read}, every byte", message)
    (picture,) = tmp_path.glob("sbench-runs/*/plot.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "start",
    [moto, rclone, pytest.param(versitygw, marks=pytest.mark.full)],
    ids=lambda f: f.__name__,
)
def test_a_stranger_reads_their_own_bucket_two_commands_after_the_keys(
    start: Callable[[Path], AbstractContextManager[Server]], installed: Path, tmp_path: Path
) -> None:
    """With an empty home, and an otherwise empty PATH."""
    home = tmp_path / "home"
    home.mkdir()
    two = [line for line in lines(wheel=False) if "--create-bucket" in line or "read  " in line]
    with start(tmp_path) as store:
        small = {"https://store.example:9000": store.endpoint_url, "--number 200": "--number 4"}
        for message, run in small.items():
            two[0] = two[0].replace(message, run)
        keys = [f"export {name}={value}" for name, value in store.environment.items()]
        message = shell([*keys, *two], home, {"PATH": str(installed), "HOME": str(home)})
    assert len(two) == 2
    assert re.search(r"verified +16 MiB, every byte", message)


def test_the_wheel_has_the_package_as_it_is_here_and_its_first_example_runs(
    installed: Path, moto: Server, tmp_path: Path
) -> None:
    """With equal modules and files, the other examples run as they do in a clone."""
    where = "python -c 'import serverless_bench; print(serverless_bench.__file__)'"
    typed = [where, "sbench examples --all", "python examples/first_run.py"]
    own = {"PATH": str(installed), "HOME": str(tmp_path)}
    message = shell(typed, tmp_path, {**own, **moto.environment})
    (package,) = installed.parent.glob("lib/*/site-packages/serverless_bench")
    assert f"\n{package}/" in message
    code = files_of(ROOT / "serverless_bench")
    packed = {p: code[p] for p in code if not is_for_a_clone(f"serverless_bench/{p}")}
    assert files_of(package) == packed
    wanted = files_of(ROOT / "examples")
    del wanted[Path("README.md")]
    assert files_of(tmp_path / "examples") == wanted


def files_of(folder: Path) -> dict[Path, str]:
    """Return the digests of a folder's files: a difference of contents would fill the log."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {p.relative_to(folder): sha256(p.read_bytes()).hexdigest() for p in files}


def first_run(command: Path, directory: Path, environment: Mapping[str, str]) -> None:
    """Run a small demo, and write a stack, with an installed command."""
    message = shell(
        [f"{command} demo --number 1 --mb 1", f"{command} aws stack stack"],
        directory,
        {**environment, "PATH": str(command.parent)},
    )
    assert "plot: " in message
    # This checkout wrote the stack that the test uses elsewhere.
    write_folder(directory / "wanted")
    made, wanted = (files_of(directory / name) for name in ("stack", "wanted"))
    assert made == wanted


@pytest.mark.on_change("pyproject.toml", "requirements", "docs/install.md", "serverless_bench/cli")
def test_uv_installs_it_as_a_tool(wheel: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    own = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    shell([f"{UV} tool install --python {sys.executable} {wheel}"], tmp_path, environment | own)
    first_run(tmp_path / "bin" / "sbench", tmp_path, environment)


@pytest.mark.on_change("docs/python.md", "pyproject.toml", "serverless_bench/features/python")
def test_the_python_page_begins_with_lines_that_run_beside_a_wheel_with_its_extra(
    wheel: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    (tmp_path / "lines.py").write_text(
        next(c for kind, c in BLOCK.findall(page) if kind == "python")
    )
    extra = re.findall(r"pip install 'serverless-bench(\[\w+\])'", page)[0]
    making = [f"{UV} venv --python {sys.executable} venv"]
    making += [f"{UV} pip install --python venv/bin/python '{wheel}{extra}'"]
    shell(making, tmp_path, environment)
    own = {**environment, "PATH": str(tmp_path / "venv" / "bin")}
    message = shell(["python lines.py"], tmp_path, own)
    assert "read: 4 of 4 functions ok" in message
    assert "deleted 8 objects" in message


@pytest.mark.full
def test_pipx_installs_it(wheel: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    own = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    installing = ["venv/bin/pip install pipx", f"venv/bin/pipx install {wheel}"]
    shell(installing, tmp_path, environment | own)
    first_run(tmp_path / "bin" / "sbench", tmp_path, environment)


@pytest.mark.full
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_pip_installs_it_on_another_python(
    wheel: Path, tmp_path: Path, environment: dict[str, str], version: str
) -> None:
    versions = Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    found = [*versions, *filter(None, [shutil.which(f"python{version}")])]
    if not found:
        pytest.skip(f"no Python {version} here")
    making = [f"{found[0]} -m venv venv", f"venv/bin/pip install {wheel}"]
    shell(making, tmp_path, environment)
    first_run(tmp_path / "venv" / "bin" / "sbench", tmp_path, environment)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of this checkout, with its user's files and its compiled modules."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        return [
            n
            for n in names
            if n in LEFT_OUT or n.startswith(".venv") or (n.startswith(".") and n.endswith("cache"))
        ]

    clone = shutil.copytree(ROOT, tmp_path / "clone", ignore=left_out)
    for path in clone.glob("examples/*.toml"):
        path.write_text(path.read_text("utf-8").replace("mb = 16", "mb = 1"), "utf-8")
    (clone / "results.pickle").write_bytes(pickle.dumps(tuples()))
    return clone


@pytest.fixture
def store() -> Iterator[str]:
    with serving() as server:
        yield server.endpoint_url


@pytest.mark.on_change("Makefile", "README.md", "serverless_bench/cli")
@pytest.mark.timeout(3600)  # an installation and thirty commands, on a machine that may be busy
def test_every_command_for_a_clone(clone: Path, store: str, environment: dict[str, str]) -> None:
    typed = [line for line in lines(wheel=False) if not is_on_aws(line)]
    message = shell([replaced(line) for line in typed], clone, {**environment, "STORE": store})
    assert "\nsbench is in .venv/bin; for this shell: export PATH=$PWD/.venv/bin:$PATH\n" in message


@pytest.mark.full
def test_every_command(clone: Path, store: str, environment: dict[str, str]) -> None:
    with running_localstack() as localstack:
        region = {**localstack.environment, "SAM_CLI_POLL_DELAY": "1"}
        there = " ".join(f"{name}={shlex.quote(value)}" for name, value in region.items())
        typed = [
            f"(export {there} PATH={SAM.parent}:$PATH; {replaced(line)}\n)"
            if is_on_aws(line)
            else replaced(line)
            for line in lines(wheel=False)
        ]
        shell(typed, clone, {**environment, "STORE": store})


def test_what_stands_in_is_for_something() -> None:
    text = "\n".join([*lines(wheel=True), *lines(wheel=False)])
    assert [message for message in STANDS_IN if message not in text] == []
