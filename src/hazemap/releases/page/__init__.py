"""A release as one page for a browser, which holds all it needs and asks nobody for anything."""
