"""Whether the figures of a run are possible and repeatable, and match the log of the store."""
