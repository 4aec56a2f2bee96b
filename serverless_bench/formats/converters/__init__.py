"""Ways to turn other tools' configurations into job files: one file and one line each."""

from collections.abc import Mapping
from typing import Final, cast

from serverless_bench import plugins
from serverless_bench.formats.converters.base import Converter

CONVERTERS: Final[Mapping[str, str]] = {
    "sai3": "serverless_bench.formats.converters.sai3:convert",
    "warp": "serverless_bench.formats.converters.warp:convert",
}


def open_converter(name: str) -> Converter:
    """Return the converter called ``name``."""
    return cast("Converter", plugins.load("converters", CONVERTERS, name))
