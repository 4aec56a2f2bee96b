"""Comparison of a run with the store's log of it.

The audit shares no code with reports: it reads the lines of the run directory directly, and
compares them with the lines of a request log (``sbench serve --request-log``)::

    request_log        the store's file                           StoreRequest
    reported_run   content of the run directory               ReportedRun
    run_requests   requests that belong to the run            RunRequests
    matching       pairs of attempts and requests             Matches
    job_check      amount of data that the job requires
    bytes_check    bytes of operations and bytes of requests
    timing_check   latencies, clocks and schedules against the store's instants
    bill_check     requests against the bill, and remaining objects
    byte_ranges    number of transfers of each byte
    discrepancy    disagreement between run and store         Discrepancy
    audit          all of this                                Audit

Users find it in README.md.
"""
