"""Methods of the literature, as published: one file a method, with its paper."""
