"""What bounded a run: its functions, their rates, its slots."""
