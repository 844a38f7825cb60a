"""Reads tables of any kind as a stream of rows: files and frames, columns, ids, points."""
