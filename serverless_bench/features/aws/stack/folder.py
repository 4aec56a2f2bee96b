"""A folder with template, recipe and code for ``sam build`` and ``sam deploy``.

It has the relative paths of a clone of this repository, whose root is such a folder, too. It has
no references to this installation and can be copied to the machine that deploys.
"""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.stack.source import PACKAGE, copy_source
from serverless_bench.features.aws.stack.template import MARK, template

_TEMPLATE: Final = "template.yaml"
_SETTINGS: Final = "samconfig.toml"
_HERE: Final = Path(__file__).parent


def write_folder(folder: Path, text: str | None = None) -> None:
    """Write the files of a stack; files of an earlier call are replaced.

    Parameters
    ----------
    folder
        Created if it does not exist. Its SAM settings are kept, and so is its code if it is the
        clone that this package runs from.
    text
        The template; None for the default template.

    Raises
    ------
    UsageError
        If the folder has other files, or cannot be written.
    """
    text = text or template()
    code = folder / PACKAGE.name
    try:
        is_our_clone = code.exists() and code.samefile(PACKAGE)
        if not is_our_clone:
            _check(folder)
        if not folder.parent.exists():
            folder.parent.mkdir(parents=True)
        with TemporaryDirectory(prefix=".sbench-", dir=folder.parent) as drafts:
            draft = Path(drafts)
            (draft / _TEMPLATE).write_text(text, encoding="utf-8")
            if not (folder / _SETTINGS).exists():
                shutil.copyfile(_HERE / _SETTINGS, draft / _SETTINGS)
            if not is_our_clone:
                # `sam build` takes those that each function needs.
                copy_source(draft, "features.aws.stack.source", clients=CLIENTS)
                shutil.copytree(
                    _HERE / "recipe",
                    draft / PACKAGE.name / "features" / "aws" / "stack" / "recipe",
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            folder.mkdir(exist_ok=True)
            # All files exist now. The template goes first: it marks a folder that may be replaced.
            for name in (_TEMPLATE, _SETTINGS, PACKAGE.name):
                if (draft / name).is_dir() and os.path.lexists(folder / name):
                    (folder / name).rename(draft / "before")
                if (draft / name).exists():
                    (draft / name).rename(folder / name)
    except OSError as exc:
        raise UsageError(
            f"cannot write {folder}: {exc.strerror or exc}", hint="name another folder"
        ) from exc


def _check(folder: Path) -> None:
    """Raise an error for a folder with other files, because files in it are deleted."""
    path = folder / _TEMPLATE
    is_stack = path.is_file() and path.read_bytes().startswith(MARK.encode())
    # A stack has no commands: this would be another clone of sbench.
    is_clone = (folder / PACKAGE.name / "cli").exists()
    if folder.is_dir() and any(folder.iterdir()) and (is_clone or not is_stack):
        raise UsageError(
            f"{folder} has other files than those of a stack", hint="name a new folder"
        )
