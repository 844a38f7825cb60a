"""What releases cost and how good they are, us and the peers: `python -m research.benchmarks.NAME`, or `make bench`."""
