"""Run the notebooks and keep their outputs.

make notebooks
"""

from pathlib import Path
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


def executed(notebook: Any, timeout_s: int = _TIMEOUT_S) -> Any:  # noqa: ANN401 - nbformat's own
    """Return an executed notebook without values that depend on the machine."""
    place = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(notebook, timeout=timeout_s, resources=place, kernel_name="python3")
    ran = client.execute()
    ran.metadata["language_info"] = {"name": "python"}
    for cell in ran.cells:
        cell.metadata.pop("execution", None)
    return ran


if __name__ == "__main__":
    main()
