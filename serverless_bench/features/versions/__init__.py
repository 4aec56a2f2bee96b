"""Versions of deleted objects that a bucket with versioning keeps."""
