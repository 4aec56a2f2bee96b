"""What a run costs: before it (``forecast``), while it goes on, and after it (``bill``).

Everything here is arithmetic on values that are passed in; only ``prices`` reads a file::

    prices      dollars per unit, from a dated file         Prices
                what is paid for, and its price             BilledUsage, Dollars
    places      regions, and which bytes leave them         placed
    forecast    from what is planned to a usage             PlannedLoad, Forecast
    bill        from what a run recorded to a usage         Bill

docs/cost.md explains the figures and where they come from.
"""
