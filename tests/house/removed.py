"""Tests of a scratch copy that import a removed feature are skipped.

A test may import a feature as an example, or as the server that it needs. The product may not:
an import of a removed feature by the package fails as ever.
"""

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Final

import pytest

SCRATCH: Final = "TEST_SCRATCH"
"""Set in the environment of tests of a scratch copy, which may lack members."""
WORDS: Final = frozenset(os.environ.get(SCRATCH, "").split())
"""In a scratch copy, names of removed features, and of their commands, plugins and settings."""
_FEATURES: Final = "serverless_bench.features."
_TESTS: Final = ("benchmarks.", "conftest", "docs.", "tests.")


class Skipping:
    """Finds nothing, as the last of the finders, and skips a test that asks for a feature."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Skip the test, or the whole file, if it imports a feature that is not there."""
        if name.startswith(_FEATURES) and name.count(".") == 2 and _is_by_a_test():
            raise pytest.skip.Exception(f"without {name}", allow_module_level=True)
        return None


def skip_tests_of_removed_features() -> None:
    """Skip tests that import a removed feature, if this is a scratch copy."""
    if SCRATCH in os.environ:
        sys.meta_path.append(Skipping)


def is_removed(words: Iterable[str]) -> bool:
    """Tell whether words name a feature that this scratch copy lacks, or a part of it."""
    parts = (part for word in words for part in re.findall(r"\w+(?:-\w+)*", word))
    return not WORDS.isdisjoint(part.replace("_", "-").removeprefix("no-") for part in parts)


def skip_if_named(words: Iterable[str]) -> None:
    """Skip a row of a table, such as a command with its flags, that names a removed feature."""
    if is_removed(words):
        pytest.skip("the row names a removed feature")


def skip_if_removed(code: str) -> None:
    """Skip a test of code that names a removed feature, but for its comments."""
    nodes = [*ast.walk(ast.parse(code))] if WORDS else []
    names = {str(value) for node in nodes for value in vars(node).values()}
    if is_removed(name for name in names if " " not in name):
        pytest.skip("the code names a removed feature")


whole = pytest.mark.skipif(bool(WORDS), reason="features were removed")
"""For tests of the repository as a whole: that tables are complete, and documents many."""


def _is_by_a_test() -> bool:
    importing = next((name for name in _modules(sys._getframe(1)) if "importlib" not in name), "")
    return importing.startswith(_TESTS) or ".tests." in importing


def _modules(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        if (name := frame.f_globals.get("__name__", "")) != __name__:
            yield name
        frame = frame.f_back
