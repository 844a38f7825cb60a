"""What a device has paid and may still pay: its charges, its budgets, their clock, and the log a person reads."""
