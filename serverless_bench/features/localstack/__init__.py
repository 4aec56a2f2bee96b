"""LocalStack, to try the deployed template without an account and without Docker.

LocalStack implements S3, CloudFormation with the SAM transform, IAM, STS, CloudWatch Logs
and Lambda. It cannot run functions here, because it needs Docker for them. Therefore a plugin
of sbench requests processes from sbench's Lambda host::

    sam, boto3, sbench --> LocalStack (own environment, own Python packages)
                              executor.py --HTTP--> sbench lambda-host --> processes

``server`` installs and runs it; ``executor`` and ``gateway`` are the plugins, which are never
imported here. It is not a store to measure: it is slow and keeps no data, and serves every
purpose except for storage.
"""
