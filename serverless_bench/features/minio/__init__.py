"""The minio-py library as a client."""
