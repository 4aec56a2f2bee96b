"""Converters of other tools' configurations into job files, each with one module and one line."""

from typing import Final

from serverless_bench.base.plugins import Registry
from serverless_bench.features.formats.converters.base import Converter

CONVERTERS: Final = Registry[Converter](
    "converters",
    {
        "sai3": "serverless_bench.features.formats.converters.sai3:convert",
    },
)

open_converter: Final = CONVERTERS.load
