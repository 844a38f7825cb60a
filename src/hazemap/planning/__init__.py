"""What a release would be like, tried on a city that does not exist; no data is touched."""
