"""s3dlio as a client."""
