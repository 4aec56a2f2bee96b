"""Make of an installed folder what a function needs: ``pack.py FOLDER RUNTIME``.

``sam build`` installs ``function.txt`` into FOLDER before. Here go the parts of those packages
that no function uses; in come the modules of sbench that it needs, and the bytecode of everything.
Without bytecode every cold start would compile 300 modules: Lambda's code folder cannot be
written to, so it is never kept. RUNTIME is Lambda's name for a Python, as ``python3.13``; uv
fetches that Python where there is none.

This file has to be readable by Python 3.9, which is what ``python3`` is on macOS.
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

ROOT = Path(__file__).resolve().parents[4]
"""The folder that has the package, of a clone or of a stack."""
USELESS = (
    # cffi's compiler; at run time cryptography needs the backend module alone.
    *("cffi", "pycparser"),
    # The descriptions of 400 services: signing needs none of them.
    *("botocore/data", "botocore/docs", "dateutil/zoneinfo"),
    # Scripts, type stubs, and what only an installer reads.
    *("bin", ".lock", "*.dist-info", "**/*.pyi", "**/py.typed"),
)


def main(folder: Path, runtime: str) -> None:
    """Prune ``folder``, copy our code into it and compile both with the runtime's Python."""
    python = find_python(runtime)
    # No older Python reads the package.
    if python is None and sys.version_info < (3, 11):
        sys.exit(f"no {runtime} here, and python3 is too old: install {runtime}")
    for pattern in USELESS:
        for path in list(folder.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    copying = [*(python or [sys.executable]), "-B", "-m", "serverless_bench.aws.stack.source"]
    subprocess.run([*copying, folder], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    if python is None:
        sys.stderr.write(f"no {runtime} here: without its bytecode cold starts are slower\n")
        return
    # Lambda runs what it is given: nothing has to be compared with the source's time stamp.
    compiling = ["compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*python, "-m", *compiling, "-s", folder, "-p", "/var/task", folder], check=True)


def find_python(runtime: str) -> Sequence[str] | None:
    """Return how to start a Python of the version that ``runtime`` names, or None."""
    version = runtime.removeprefix("python")
    # Without a network this is over at once; the zip works without bytecode, too.
    environment = {"UV_HTTP_RETRIES": "0", **os.environ}
    told = f"import sys; print('python%d.%d' % sys.version_info[:2] == {runtime!r})"
    for python in (
        [sys.executable],
        [runtime],
        ["uv", "run", "--no-project", "--python", version, "python"],
    ):
        if shutil.which(python[0]) is None:
            continue
        done = subprocess.run(
            [*python, "-c", told], capture_output=True, text=True, check=False, env=environment
        )
        if done.stdout.strip() == "True":
            return python
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
