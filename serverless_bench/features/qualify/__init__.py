"""Checks that a store keeps the guarantees which table formats, locks and backups rely on."""
