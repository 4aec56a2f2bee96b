"""What bounds a job, found by changing one thing at a time."""
