"""What people's devices are asked: recipes, their bins, and the queries that a device lets run."""
