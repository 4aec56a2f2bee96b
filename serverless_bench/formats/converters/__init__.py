"""Converters of other tools' configurations into job files, each with one module and one line."""

from typing import Final

from serverless_bench.formats.converters.base import Converter
from serverless_bench.plugins import Registry

CONVERTERS: Final = Registry[Converter](
    "converters",
    {
        "sai3": "serverless_bench.formats.converters.sai3:convert",
    },
)

open_converter: Final = CONVERTERS.load
