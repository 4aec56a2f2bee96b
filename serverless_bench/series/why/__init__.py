"""What bounds a job, found out by changing one thing at a time in short blocks of a run."""
