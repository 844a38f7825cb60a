"""The conversation: an algorithm's noisy queries, what it discloses, and the session that asks and charges."""
