"""Cost of a run: predicted (``forecast``), during the run, and after it (``bill``).

These modules compute with values that are passed in; only ``prices`` opens a file::

    prices      dollars per unit, from a dated file         Prices
                billed quantities and their price           BilledUsage, Dollars
    places      regions, and bytes that leave them          placed
    forecast    from a planned load to a usage              PlannedLoad, Forecast
    bill        from a recorded run to a usage              Bill

README.md explains the numbers and their sources.
"""
