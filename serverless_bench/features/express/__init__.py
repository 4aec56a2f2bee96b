"""Sessions of the thin client for directory buckets (S3 Express One Zone)."""
