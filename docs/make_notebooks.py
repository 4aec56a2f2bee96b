"""Run the notebooks and keep their outputs.

make notebooks
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

FOLDER: Final = Path(__file__).parents[1] / "notebooks"
_TIMEOUT_S: Final = 600


def main() -> None:
    """Write every notebook with its outputs."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        nbformat.write(executed(notebook), path)  # type: ignore[no-untyped-call]


def executed(
    notebook: Any,
    timeout_s: int = _TIMEOUT_S,
    environment: Mapping[str, str] = os.environ,
) -> Any:
    """Return an executed notebook without values that depend on the machine."""
    # Runs that a notebook makes do not stay here.
    with TemporaryDirectory() as copy:
        shutil.copytree(FOLDER, copy, dirs_exist_ok=True)
        client = NotebookClient(
            notebook,
            timeout=timeout_s,
            # A minute, if not said: too short on a busy machine.
            startup_timeout=timeout_s,
            resources={"metadata": {"path": copy}},
            kernel_name="python3",
        )
        ran = client.execute(env=dict(environment))
    ran.metadata["language_info"] = {"name": "python"}
    for cell in ran.cells:
        cell.metadata.pop("execution", None)
    return ran


if __name__ == "__main__":
    main()
