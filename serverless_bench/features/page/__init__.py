"""HTML pages: single files that need no network and are readable without scripts.

``values`` shows values with their definitions, ``charts`` describes charts for Vega-Lite,
``document`` escapes elements and combines them in a file, and the other modules create the pages:
of a run, of a comparison, of a series of runs.
"""
