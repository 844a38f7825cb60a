"""The one door to GDAL: which files it opens, by which driver, and what these may make it read and do."""
