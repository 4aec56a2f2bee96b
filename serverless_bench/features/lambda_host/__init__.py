"""A Lambda that runs on this machine.

It implements the real Invoke API and runs each execution environment as a separate process under
``awslambdaric``, the runtime client that runs inside AWS Lambda::

    boto3 --Invoke API--> invoke --> events (asynchronous) --> pool --> environment
                                                                           | Runtime API
    fork server, one per function's code --forks--> process: awslambdaric + handler

``settings`` has the command line's settings and the injected faults, ``limits`` the resources of
a process, ``control`` the calls that create functions, ``admin_api`` additional calls for tests
and LocalStack, and ``server`` listens.
"""
