"""Plans of releases, tried on a synthetic city; no data is touched."""
