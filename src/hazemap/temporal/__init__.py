"""When: timeslots, and the clocks of a place."""
