"""Files of other tools, in and out: importers, exporters and converters of job files."""
