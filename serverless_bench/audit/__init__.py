"""Hold a run against what the store saw of it.

Nothing here is shared with what makes the report: the run directory's lines are read as
they are, and compared with the lines of a witness (``sbench serve --witness``)::

    witness     the store's file            Seen
    claims      the run directory           Claims
    scope       which requests are the run's, and whose of it
    asked       what the job asked for      and whether it was moved
    tries       tries against requests, bytes against bytes
    times       latencies, clocks and schedules against instants
    billed      requests against the bill
    left        what is still there

docs/witness.md is for users.
"""
