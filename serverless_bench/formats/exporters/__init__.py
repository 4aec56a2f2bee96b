"""Exporters of runs for other tools, each with one module and one line here."""

from typing import Final

from serverless_bench.formats.exporters.base import Exporter
from serverless_bench.plugins import Registry

EXPORTERS: Final = Registry[Exporter](
    "exporters",
    {
        "csv": "serverless_bench.formats.exporters.csv:EXPORTER",
        "parquet": "serverless_bench.formats.exporters.parquet:EXPORTER",
        "pywren": "serverless_bench.formats.exporters.pywren:EXPORTER",
        "warp": "serverless_bench.formats.exporters.warp:EXPORTER",
    },
)
