"""Rigs: servers, a Lambda host and a model to try jobs against, on this machine."""
