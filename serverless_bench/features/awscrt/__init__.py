"""The AWS Common Runtime as a client."""
