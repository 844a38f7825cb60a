"""Kinds of evidence between the bytes that go in and the file and the ledger that come out."""
