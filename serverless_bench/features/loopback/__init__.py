"""An S3-compatible server that stores no data, for calibration and for planned faults.

The server compares each upload with the keystream of its key and discards it, and generates
each download on request. Any amount of data therefore fits, and the server can tell whether
each byte is right. Listed from the top down; a module imports only modules below it::

    server      listens, a thread per connection         LoopbackServer
    operations  handlers of the S3 requests              OPERATIONS
    listings    handlers of the list requests
    connection  HTTP, and injection of faults            S3Connection
    state       settings, and data that connections share    LoopbackSettings, StoreState
    objects     table of keys and open uploads           ObjectTable
    request_log     log of all requests, in a file           RequestLog
    bodies      uploads: unframed, compared              Body, Inspector
    sessions    sessions and limits of directory buckets     SessionTable
    shaping     delay of each request                    Shaper
    faults      which requests fail, and how             FaultPlan
    process     the store as a separate process          served
    listener    which connections and pages are accepted     OwnListener
    s3          requests, errors and documents of S3 and of Google Cloud Storage   S3Request

Users find it in README.md. ``sbench serve`` runs it; tests run it in a thread.
"""
