"""Functions on AWS Lambda."""
