"""Verifiable distributed aggregation functions (draft-irtf-cfrg-vdaf): bytes in, bytes out; no randomness inside."""
