"""Cost of a run: predicted (``forecast``), during the run, and after it (``bill``).

These modules compute with values that are passed in; only ``prices`` opens a file::

    prices      dollars per unit, from a dated file         Prices
                billed quantities and their price           BilledUsage, Dollars
    places      regions, and bytes that leave them          placed
    model       parameters of forecasts, from dated files   Model, Store
    forecast    times of a job, from a sample of requests   Sampler, Times, Forecast
    expected    from a job to its operations and usage      Expected
    bill        from a recorded run to a usage              Bill

README.md explains the numbers and their sources.
"""
