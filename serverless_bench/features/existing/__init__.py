"""Objects that sbench did not write, as the source of a job."""
