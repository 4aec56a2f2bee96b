"""Pages for a browser."""

from importlib import import_module
from typing import Final

from serverless_bench.plugins import extra

PAGE: Final = "html"
"""The format that is one."""


def require_pages(style: str) -> None:
    """Check that pages can be made, before anything runs whose end is one.

    Raises
    ------
    PluginError
        If the format is a page, and the library is not installed.
    """
    if style == PAGE:
        with extra(PAGE, f"--format {PAGE}"):
            import_module("vl_convert")
