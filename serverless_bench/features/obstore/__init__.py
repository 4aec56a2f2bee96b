"""obstore as a client, and the control of other stores through it."""
