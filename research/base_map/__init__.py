"""Makes the base map that the package carries."""
