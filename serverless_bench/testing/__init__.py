"""Test suites that every plugin passes; inherit them for your own.

They need pytest, which is no dependency of this package.
"""
