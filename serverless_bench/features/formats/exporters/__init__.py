"""Exporters of runs for other tools, each with one module and one line here."""

from typing import Final

from serverless_bench.base.plugins import Registry
from serverless_bench.features.formats.exporters.base import Exporter

EXPORTERS: Final = Registry[Exporter](
    "exporters",
    {
        "csv": "serverless_bench.features.formats.exporters.csv:EXPORTER",
        "parquet": "serverless_bench.features.formats.exporters.parquet:EXPORTER",
        "pywren": "serverless_bench.features.formats.exporters.pywren:EXPORTER",
        "warp": "serverless_bench.features.formats.exporters.warp:EXPORTER",
    },
)
