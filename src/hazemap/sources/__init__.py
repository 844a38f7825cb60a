"""Where tables and databases are: what an address means, parsed once, and connections to PostgreSQL."""
