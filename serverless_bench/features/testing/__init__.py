"""Test suites that all plugins have to pass; inherit them to test another plugin.

They need pytest, which is not a dependency of this package.
"""
