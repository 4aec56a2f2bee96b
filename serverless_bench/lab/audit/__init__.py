"""Hold a run against what the store saw of it.

Nothing here is shared with what makes the report: the run directory's lines are read as
they are, and compared with the lines of a witness (``sbench serve --witness``)::

    witness        the store's file                           StoreRequest
    reported_run   what the run directory says                ReportedRun
    run_requests   which requests are the run's               RunRequests
    matching       attempts and requests, one to one          Matches
    job_check      what the job asks for was moved, as often as it asks
    bytes_check    bytes of operations and bytes of requests
    timing_check   latencies, clocks and schedules against the store's instants
    bill_check     requests against the bill, and what is still there
    byte_ranges    how often which bytes were moved
    discrepancy    what run and store do not agree on         Discrepancy
    audit          all of this                                Audit

docs/witness.md is for users.
"""
