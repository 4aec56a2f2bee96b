"""An S3-compatible server that keeps no data: for calibration, and for planned faults.

What is uploaded is compared with the keystream of its key and forgotten; what is
downloaded is made anew. So any amount of data fits, and the server knows by itself
whether a byte is right. A request goes through files that are named after the steps::

    server        listens, one thread per connection      LoopbackServer
    handler       one request, from its head to its answer
    asked         what it asks for                        Asked
    faulty        whether it meets a limit or a fault     FaultyConnection
    faults        which fault, and how                    FaultPlan
    shaping       how long it waits                       Shaper
    connection    heads and bodies, by the block          Connection
    bodies        bodies without their chunks             Body
    inspector     are they the keystream of their key?    Inspector
    parts         do parts make one object?               place
    objects       which keys there are                    Objects
    counts        what happened                           Counts
    witness       request by request                      Witness

and ``object_operations``, ``part_operations``, ``bucket_operations``, ``listing`` and
``answers`` are what S3 says to it.

docs/loopback.md is for users. ``sbench serve`` runs it, tests run it as a thread.
"""
