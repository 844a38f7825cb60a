"""Protocols between people, leaders and helpers: bytes in, bytes out, no socket and no file."""
