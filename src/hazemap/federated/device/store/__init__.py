"""The encrypted file of a device: its rows, its events and the sessions it was asked into."""
