"""AWS SAM CLI, from the environment that ``make .venv-sam/ready`` makes for it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from serverless_bench.features.aws.stack.folder import write_folder
from serverless_bench.features.aws.stack.template import DEFAULT_MEMORY, THIN, template

ROOT = Path(__file__).parents[2]
SAM = ROOT / ".venv-sam" / "bin" / "sam"
WITH_UV = f"{SAM.parent}:{os.environ['PATH']}"
"""Paths of uv and a Python for the recipe of the function."""
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""Runtime whose modules can be imported here."""
ARCHITECTURE = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
HERE = f"--python-version {RUNTIME.removeprefix('python')} --python-platform {{}}-manylinux_2_28"
"""Wheels for this machine, whose glibc may be newer than that of Amazon Linux 2."""


def sam(scratch: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run ``sam`` in a scratch directory, and return its output."""
    assert SAM.exists(), "make .venv-sam/ready"
    own = {
        "PATH": WITH_UV,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "1",
        # Replaces the folder in the user's home directory.
        "__SAM_CLI_APP_DIR": str(scratch / "sam"),
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    done = subprocess.run(
        [str(SAM), *map(str, arguments)],
        cwd=scratch,
        env={**os.environ, **own, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def clone(folder: Path) -> Path:
    """Copy the parts of a clone that ``sam build`` uses at its root."""
    package = "serverless_bench"
    shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("samconfig.toml", "template.yaml"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def build(scratch: Path, *memory: int, clients: Sequence[str] = (THIN,)) -> Path:
    """Run ``sam build`` for this machine and return the folder that it made.

    ``memory`` are the sizes of the functions of a stack that is written for it; without them it is
    built in a clone.
    """
    folder, stack = scratch / "build", scratch / "stack"
    text = template(memory or DEFAULT_MEMORY, [ARCHITECTURE], runtime=RUNTIME, clients=clients)
    if memory:
        write_folder(stack, text)
    else:
        (clone(stack) / "template.yaml").write_text(text)
    sam(scratch, "build", "--build-dir", folder, "--template", stack / "template.yaml")
    return folder


def body_for_here(scratch: Path, client: str) -> Path:
    """Make the folder of a function that runs on this machine, with the library of a client."""
    return body(scratch, client, RUNTIME, ARCHITECTURE, HERE.format(platform.machine()))


def body(scratch: Path, client: str, runtime: str, arch: str, wheels: str = "") -> Path:
    """Run the recipe as ``sam build`` does, and return the folder of a function.

    ``wheels`` replaces the flags of uv for the runtime and the architecture.
    """
    stack, made = scratch / "stack", scratch / f"{client}-{arch}"
    write_folder(stack)
    recipe = stack / "serverless_bench/features/aws/stack/recipe"
    place = recipe / f"{runtime}-{arch}"
    if wheels:
        (place / "platform").write_text(wheels)
    target = "build-Worker" + (f"With{client.title()}" if client != THIN else "")
    done = subprocess.run(
        ["make", "--silent", "-f", recipe / "Makefile", target, f"ARTIFACTS_DIR={made}"],
        cwd=place,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never", "PATH": WITH_UV},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return made


def size(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
