"""Display of a run in progress: in a terminal, in a notebook, in a log."""
