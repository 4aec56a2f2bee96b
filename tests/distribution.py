"""Check the output of `python -m build`: metadata, and completeness of files.

python -m tests.distribution dist
"""

import argparse
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from trove_classifiers import classifiers

from serverless_bench import __version__
from tests.documents.quoted import ROOT

PACKAGE: Final = "serverless_bench"
ALSO_IN_SDIST: Final = (
    *(
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Containerfile",
        "LICENSE",
        "Makefile",
        "README.md",
        "pyproject.toml",
        "samconfig.toml",
        "template.yaml",
    ),
    *("docs/README.md", "examples/first_run.py", "requirements/dev.txt"),
    *("conftest.py", "tests/selection.py", ".ci/run", ".dockerignore"),
)


def problems(directory: Path) -> Iterator[str]:
    """Yield problems of the wheel and the source distribution in a directory."""
    wheels, sdists = sorted(directory.glob("*.whl")), sorted(directory.glob("*.tar.gz"))
    if (len(wheels), len(sdists)) != (1, 1):
        yield f"{directory} has {len(wheels)} wheels and {len(sdists)} source distributions"
        return
    versions = {
        str(parse_wheel_filename(wheels[0].name)[1]),
        str(parse_sdist_filename(sdists[0].name)[1]),
    }
    if versions != {__version__}:
        yield f"files say {versions}, the package says {__version__}"
    with zipfile.ZipFile(wheels[0]) as wheel:
        info = f"{PACKAGE}-{__version__}.dist-info"
        code = {name for name in sources() if not is_for_a_clone(name)}
        yield from _missing("the wheel", {*code, f"{info}/licenses/LICENSE"}, wheel.namelist())
        yield from (f"the wheel has {name}" for name in wheel.namelist() if is_for_a_clone(name))
        yield from of_metadata(wheel.read(f"{info}/METADATA"))
    with tarfile.open(sdists[0]) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
        yield from _missing("the source distribution", {*sources(), *ALSO_IN_SDIST}, names)


def of_metadata(data: bytes) -> Iterator[str]:
    """Yield problems for an index or for readers."""
    found = Metadata.from_email(data, validate=True)
    for name in ("summary", "description", "license_expression", "keywords", "requires_python"):
        if not getattr(found, name):
            yield f"the metadata have no {name}"
    if found.description_content_type != "text/markdown":
        yield f"the description is {found.description_content_type}"
    yield from (
        f"no such classifier: {name}" for name in found.classifiers or () if name not in classifiers
    )


def sources() -> list[str]:
    """Return every file that belongs to the package."""
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / PACKAGE).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def is_for_a_clone(name: str) -> bool:
    """Tell whether a file of the package is a test, a picture of a page or a result of a study."""
    return not {"tests", "results"}.isdisjoint(name.split("/")) or name.endswith(".png")


def _missing(what: str, wanted: set[str], names: list[str]) -> Iterator[str]:
    yield from (f"{what} lacks {name}" for name in sorted(wanted - {*names}))
    yield from (f"{what} has {name}" for name in names if name.endswith((".pyc", "__pycache__")))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description="Check a wheel and a source distribution.")
    made.add_argument("directory", type=Path)
    return made


if __name__ == "__main__":
    sys.exit("\n".join(problems(parser().parse_args().directory)) or None)
