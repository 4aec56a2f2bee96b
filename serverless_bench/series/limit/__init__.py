"""The highest level of a load that holds an objective: what is asked, and the search for it."""
