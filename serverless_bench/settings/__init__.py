"""Settings of a job: one declaration for flags, files, Python and docs."""
