"""A first run: eight functions write 16 MiB each and read it back, every byte verified."""

import serverless_bench as sbench

written = sbench.write(number=8, size="16MiB")
read = sbench.read(written)
print(written, read, sep="\n\n")
print(read.throughput, read.latency)
