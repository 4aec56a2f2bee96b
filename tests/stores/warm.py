"""Loads what commands load when they run, so that the children of a nursery find it loaded.

Each would need half a second of the CPU for it, more than for all else that it does.
"""

from functools import cache

import botocore.session

import serverless_bench.clients.boto3
import serverless_bench.clients.wire
import serverless_bench.driver.boto
import serverless_bench.driver.run
import serverless_bench.executors.inline
import serverless_bench.executors.local_pool
import serverless_bench.features.check.checked_run
import serverless_bench.metrics.summary
import serverless_bench.report.text  # noqa: F401 - it is loaded

botocore.session.create_loader = cache(botocore.session.create_loader)
# Descriptions of the service stay with the loader, which all later sessions share.
botocore.session.Session().create_client(
    "s3", "us-east-1", aws_access_key_id="nobody", aws_secret_access_key="none"
).close()
