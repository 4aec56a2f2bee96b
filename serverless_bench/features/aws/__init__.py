"""An AWS account: clients, limits, the deployed stack, and the cost of a run."""
