"""From a saved run to figures: pure functions, without a client, a clock or a network."""
