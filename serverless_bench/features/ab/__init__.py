"""Two jobs in turns."""
