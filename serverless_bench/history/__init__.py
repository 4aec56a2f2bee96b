"""Runs recorded in a folder that lives in git, and whether new ones are still as good.

``recorded`` is one run as a small file, ``folder`` the files, ``judging`` the statistics, and
``showing`` what is said of both. Nothing here runs anything.
"""
