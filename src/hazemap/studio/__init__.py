"""The studio: stewards release maps in a browser, and operators run campaigns, over the Python API of the command line.

It keeps nothing: what it shows is in the ledger and in files; sessions and running releases end with the process.
"""
