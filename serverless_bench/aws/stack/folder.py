"""A folder that ``sam build`` and ``sam deploy`` make a stack of: template, recipe and code.

It has the relative paths of a clone of this repository, whose root is such a folder, too. Nothing
in it points to this installation: it can be copied to the machine that deploys.
"""

import shutil
from pathlib import Path
from typing import Final

from serverless_bench.aws.stack.source import PACKAGE, copy_source
from serverless_bench.aws.stack.template import MARK, template
from serverless_bench.errors import UsageError

_TEMPLATE: Final = "template.yaml"
_SETTINGS: Final = "samconfig.toml"
_HERE: Final = Path(__file__).parent


def write_folder(folder: Path, text: str | None = None) -> None:
    """Write all that a stack is made of; what an earlier call wrote is replaced.

    Parameters
    ----------
    folder
        Made if need be. SAM's settings in it are kept; of the clone that this package runs from,
        so is the code.
    text
        The template; the one without parameters if it is not given.

    Raises
    ------
    UsageError
        If the folder has files of somebody else, or cannot be written.
    """
    text = text or template()
    code = folder / PACKAGE.name
    try:
        is_our_clone = code.exists() and code.samefile(PACKAGE)
        if not is_our_clone:
            _check(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # First: it is the mark of a folder that may be written again.
        (folder / _TEMPLATE).write_text(text, encoding="utf-8")
        if not (folder / _SETTINGS).exists():
            shutil.copyfile(_HERE / _SETTINGS, folder / _SETTINGS)
        if is_our_clone:
            return
        if code.exists():
            shutil.rmtree(code)
        copy_source(folder, "aws.stack.source")
        shutil.copytree(
            _HERE / "recipe",
            code / "aws" / "stack" / "recipe",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    except OSError as exc:
        raise UsageError(
            f"cannot write {folder}: {exc.strerror or exc}", hint="name another folder"
        ) from exc


def _check(folder: Path) -> None:
    """Refuse a folder that has anything but files written by us: some of it is deleted."""
    path = folder / _TEMPLATE
    is_stack = path.is_file() and path.read_bytes().startswith(MARK.encode())
    # No stack has commands: it would be the clone of another sbench.
    is_clone = (folder / PACKAGE.name / "cli").exists()
    if folder.is_dir() and any(folder.iterdir()) and (is_clone or not is_stack):
        raise UsageError(
            f"{folder} has other files than those of a stack", hint="name a new folder"
        )
