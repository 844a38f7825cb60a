"""How a device answers a recipe: the check, the public log, the query over its events, and the randomised answer."""
