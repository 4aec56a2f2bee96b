"""Scans of Parquet files: the footer, then some of the column chunks."""
