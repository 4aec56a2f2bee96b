"""Prepare an installed folder for a function: ``pack.py FOLDER RUNTIME [CLIENT]``.

``sam build`` first installs ``function.txt`` and ``CLIENT.txt`` into FOLDER. This script removes
the parts of those packages that functions do not use, adds the modules of sbench that they need,
and compiles all.
Without bytecode each cold start would compile 300 modules: Lambda's code folder is read-only, so
that bytecode is never saved. RUNTIME is Lambda's name for a Python, as ``python3.13``; uv
downloads that Python if it is not installed.

This file has to be readable by Python 3.9, the version of ``python3`` on macOS.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[5]
"""Root folder of a clone or a stack, which contains the package."""
USELESS = (
    # cffi's compiler; at run time cryptography needs only the backend module.
    *("cffi", "pycparser"),
    # The descriptions of 400 services, which are not needed for signing.
    *("botocore/data/*", "boto3/data", "botocore/docs", "dateutil/zoneinfo"),
    # Scripts, type stubs, and files for installers.
    *("bin", ".lock", "*.dist-info", "**/*.pyi", "**/py.typed"),
)
USED = {"boto3": ("botocore/data/*.json*", "botocore/data/s3", "botocore/docs")}
"""Exceptions, by client."""


def main(folder: Path, runtime: str, client: str = "") -> None:
    """Prune ``folder``, copy sbench into it and compile both with the runtime's Python."""
    python = find_python(runtime)
    # Older versions of Python cannot parse the package.
    if python is None and sys.version_info < (3, 11):
        sys.exit(f"no {runtime} here, and python3 is too old: install {runtime}")
    used = {path for pattern in USED.get(client, ()) for path in folder.glob(pattern)}
    for pattern in USELESS:
        for path in {*folder.glob(pattern)} - used:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    copying = [
        *(python or [sys.executable]),
        "-B",
        "-m",
        "serverless_bench.features.aws.stack.source",
    ]
    subprocess.run(
        [*copying, folder, *filter(None, [client])],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    if python is None:
        sys.stderr.write(f"no {runtime} here: without its bytecode cold starts are slower\n")
        return
    # Lambda does not change the code: timestamps of the sources need not be compared.
    compiling = ["compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*python, "-m", *compiling, "-s", folder, "-p", "/var/task", folder], check=True)


def find_python(runtime: str) -> Sequence[str] | None:
    """Return a command for a Python of the version in ``runtime``, or None."""
    version = runtime.removeprefix("python")
    # Without a network this fails immediately; the zip works without bytecode, too.
    environment = {"UV_HTTP_RETRIES": "0", **os.environ}
    version_test = f"import sys; print('python%d.%d' % sys.version_info[:2] == {runtime!r})"
    for python in (
        [sys.executable],
        [runtime],
        ["uv", "run", "--no-project", "--python", version, "python"],
    ):
        if shutil.which(python[0]) is None:
            continue
        done = subprocess.run(
            [*python, "-c", version_test],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if done.stdout.strip() == "True":
            return python
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
