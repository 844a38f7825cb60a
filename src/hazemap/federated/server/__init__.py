"""The coordinator of a campaign among devices: HTTP, a store, and the rounds. It sees no row and no single answer."""
