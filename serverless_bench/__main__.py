"""``python -m serverless_bench`` is ``sbench``."""

import sys

from serverless_bench.cli.main import start

sys.exit(start())
