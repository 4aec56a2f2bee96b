"""Runs recorded in a folder that lives in git, and whether new ones are still as good.

``recorded`` is one run as a small file, ``folder`` the files, ``judging`` the statistics,
``showing`` what is said of a check and ``series`` of what is recorded. Nothing here runs anything.
"""
