"""Rigs on this machine to try jobs against: servers, a Lambda host and a model."""
