"""Trust models over devices: what answers an algorithm's queries without one party that sees the rows."""
