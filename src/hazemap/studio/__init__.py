"""The studio: stewards release maps in a browser, operators run campaigns, analysts ask recipes.

It keeps nothing: what it shows is in the ledger and in files; sessions and running releases end with the process.
"""
