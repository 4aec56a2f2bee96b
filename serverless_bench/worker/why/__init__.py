"""The changes of ``sbench why`` inside a function; no other job loads this package."""
