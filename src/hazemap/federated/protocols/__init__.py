"""Protocols between parties: bytes in, bytes out, no socket and no file."""
