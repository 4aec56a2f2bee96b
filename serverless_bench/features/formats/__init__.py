"""Importers, exporters and converters for files of other tools."""
