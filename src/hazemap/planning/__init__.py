"""What to expect of a release, tried on a synthetic city; no data is touched."""
