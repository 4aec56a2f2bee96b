"""Count the files whose functions a command executes, in the process of the driver.

Functions of an inline job run there, too. Definitions of modules and classes do not count: they
are executed whenever a file is imported.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.house.measures import PACKAGE, REPOSITORY

WRITE: Final = ("write", "--number", "1", "--mb", "1", "--executor", "inline", "--progress", "none")
"""The smallest job: a write of a single object, without the live view."""
_TRACED: Final = f"""
import sys, threading

codes = set()

def note(frame, event, argument):
    codes.add(frame.f_code)

threading.setprofile(note)
sys.setprofile(note)
from serverless_bench.cli.main import main
code = main(sys.argv[1:])
sys.setprofile(None)
threading.setprofile(None)
sys.stderr.write("\\n".join(
    sorted({{code.co_filename for code in codes if code.co_flags & {inspect.CO_OPTIMIZED}}})
))
sys.exit(code)
"""


def files_of(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the paths of executed files of the package, from its folder.

    Parameters
    ----------
    command
        Arguments of ``sbench``.
    folder
        Folder for its runs.
    environment
        Additional variables, such as those of a store.
    """
    done = subprocess.run(
        [sys.executable, "-c", _TRACED, *command, "--run-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    paths = map(Path, done.stderr.splitlines())
    return [path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)]
