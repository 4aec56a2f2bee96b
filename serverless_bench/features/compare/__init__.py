"""Whether runs are faster than others: statistics, and runs that are measured for it."""
