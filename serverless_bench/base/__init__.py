"""What every room uses: errors, units, clock, plugins, processes."""
