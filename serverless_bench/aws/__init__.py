"""An AWS account: its clients, its limits, a deployed stack, and what a run costs."""
