"""What HTML pages are made of: one file each, without network, readable without scripts.

``values`` shows figures with their definitions, ``charts`` describes pictures for Vega-Lite,
``document`` escapes elements and puts them into one file, and the other modules are pages: of a
run, of a comparison, of a series of runs.
"""
