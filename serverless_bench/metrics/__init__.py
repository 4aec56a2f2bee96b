"""Analysis of a saved run: pure functions, without a client, a clock or a network."""
