"""The Amazon S3 connector for PyTorch as a client."""
