"""Runs recorded in a folder that lives in git, and whether new ones are still as good.

``check`` has what Python users call. ``recorded`` is one run as a small file, ``folder`` the files,
``judging`` the statistics, ``showing`` the text of a check and of what is recorded.
"""
