"""One of the two servers of DAP, with its storage, its keys and HTTP; and clients of both."""
