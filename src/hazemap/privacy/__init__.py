"""Noise, its price, and the ledger."""
