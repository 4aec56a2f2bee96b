"""The highest load that holds an objective."""
