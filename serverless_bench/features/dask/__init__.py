"""Functions as tasks of a Dask cluster."""
