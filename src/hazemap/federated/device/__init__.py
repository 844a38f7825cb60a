"""A person's side: their rows, their rules, and a log of every byte that ever left the device."""
