"""The bytes: filling objects, and comparing the bytes read with the bytes written."""
