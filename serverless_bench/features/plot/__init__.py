"""Pictures of runs and of answers; pages show the same charts."""
