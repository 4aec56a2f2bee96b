"""What bounds a job, found out by changes in short blocks of a run."""
