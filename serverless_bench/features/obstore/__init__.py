"""obstore as a client, and its control of other stores."""
