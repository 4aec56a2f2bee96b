"""The bytes: how objects are filled, and how what comes back is compared with what was written."""
