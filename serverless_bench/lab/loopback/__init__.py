"""An S3-compatible server that keeps no data: for calibration, and for planned faults.

What is uploaded is compared with the keystream of its key and forgotten; what is
downloaded is made anew. So any amount of data fits, and the server knows by itself
whether a byte is right. From the top down, each module imports only those below it::

    server      listens, one thread per connection       LoopbackServer
    operations  what S3 does on each request             OPERATIONS
    listings    what S3 lists
    connection  HTTP, and the faults that are injected   S3Connection
    state       settings, and what connections share     LoopbackSettings, StoreState
    objects     which keys and open uploads there are    ObjectTable
    witness     request by request, in a file            Witness
    bodies      uploads: unframed, compared              Body, Inspector
    sessions    of directory buckets, and what these refuse   SessionTable
    shaping     how long a request waits                 Shaper
    faults      which request fails, and how             FaultPlan
    process     the store as a process of its own        served
    s3          requests, errors and documents of S3 and of Google Cloud Storage   S3Request

docs/loopback.md is for users. ``sbench serve`` runs it, tests run it as a thread.
"""
