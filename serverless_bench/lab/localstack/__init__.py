"""LocalStack, to try the deployed template without an account and without Docker.

LocalStack answers S3, CloudFormation with the SAM transform, IAM, STS, CloudWatch Logs
and Lambda; what it cannot do here is run a function, because it wants Docker for that.
So a plugin of ours goes into it, and asks sbench's own Lambda host for processes::

    sam, boto3, sbench --> LocalStack (own environment, own Python packages)
                              executor.py --HTTP--> sbench lambda-host --> processes

``server`` installs and runs it; ``executor`` and ``gateway`` are the plugins,
which are never imported here. It is no store to measure against: it is slow, keeps nothing,
and is wanted for everything but its store.
"""
