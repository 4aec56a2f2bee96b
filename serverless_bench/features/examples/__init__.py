"""Examples that come with the package."""
