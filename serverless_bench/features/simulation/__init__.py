"""Simulation of a job with any number of functions: a run directory from a model, without a store.

``model`` has the parameters and their sources, ``demand`` the bytes to transfer, ``launch`` the
start of functions, ``store`` the admission and the rates of requests. ``engine`` advances time
in steps; ``records`` converts the result into the records of workers, and ``simulated_run``
combines all of this.
"""
