"""What is asked for: a checked specification, sizes and keys of objects, who reads which."""
