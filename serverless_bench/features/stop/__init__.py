"""Stop the functions of a run: ``sbench stop``."""
