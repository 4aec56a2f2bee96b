"""Runs recorded in a folder under version control, and checks of new runs against them.

``check`` contains the functions for Python users. ``recorded`` handles the file of a run,
``folder`` the files of a history, ``judging`` the statistics, ``showing`` the text of checks and
histories.
"""
