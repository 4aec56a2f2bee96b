"""A Lambda that runs on this machine.

It answers the real Invoke API and runs every execution environment as a process of its
own under ``awslambdaric``, the runtime client that runs inside AWS Lambda::

    boto3 --Invoke API--> invoke --> events (asynchronous) --> pool --> environment
                                                                           | Runtime API
    fork server, one per function's code --forks--> process: awslambdaric + handler

``settings`` is what the command line sets, and what goes wrong on purpose, ``limits`` what a
process may use, ``control`` the calls that create functions, ``admin_api`` what tests and
LocalStack ask for besides, and ``server`` listens.
"""
