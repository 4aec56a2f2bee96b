"""Commands of the lab, in the order of their names."""
