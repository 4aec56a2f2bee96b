"""Job files: stages that run in order."""
