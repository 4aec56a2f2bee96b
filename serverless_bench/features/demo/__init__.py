"""A demonstration of write, read, report and plot."""
