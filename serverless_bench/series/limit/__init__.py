"""The highest load level that holds an objective: the objective, and the search for the level."""
