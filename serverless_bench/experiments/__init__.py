"""Studies that others published, as files that anyone can run again.

Each ``*.toml`` here is one: its axes, its metrics, what it claims, and the rows that were
published. ``loading`` reads it, ``cells`` makes the list of what to run, ``plans`` keeps
it, ``runner`` runs it, ``figures`` turns a run into numbers, ``judge`` says what holds,
and ``table`` and ``plot`` show measured next to published. docs/experiments/README.md is
the guide.
"""
