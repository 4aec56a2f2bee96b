"""Tests of a scratch copy that import a removed feature are skipped.

A test may import a feature as an example, or as the server that it needs. The product may not:
an import of a removed feature by the package fails as ever.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Final

import pytest

SCRATCH: Final = "TEST_SCRATCH"
"""Set in the environment of tests of a scratch copy, which may lack members."""
_FEATURES: Final = "serverless_bench.features."
_TESTS: Final = ("conftest", "docs.", "tests.")


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


def _is_by_a_test() -> bool:
    importing = next((name for name in _modules(sys._getframe(1)) if "importlib" not in name), "")
    return importing.startswith(_TESTS) or ".tests." in importing


def _modules(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        if (name := frame.f_globals.get("__name__", "")) != __name__:
            yield name
        frame = frame.f_back
