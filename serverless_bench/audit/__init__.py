"""Hold a run against what the store saw of it.

Nothing here is shared with what makes the report: the run directory's lines are read as
they are, and compared with the lines of a witness (``sbench serve --witness``)::

    witness     the store's file                    Seen
    claims      what the run says                   Claims
    scope       which requests are the run's        Scope
    asked       what the job asked for was moved, as often as asked
    pairs       attempts and requests, one to one      Pairs
    moved       bytes of operations and bytes of requests
    times       latencies, clocks and schedules against the store's instants
    counted     requests against the bill, and what is still there
    ranges      how often which bytes
    audit       all of this                         Audit

docs/witness.md is for users.
"""
