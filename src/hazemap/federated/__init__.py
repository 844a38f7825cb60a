"""The devices' side: what runs, plans and measures maps and counts for which no table exists."""
