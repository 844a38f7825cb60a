"""Bytes that a stranger might send, and what each reader says of them: `python -m research.hostile_bytes`."""
