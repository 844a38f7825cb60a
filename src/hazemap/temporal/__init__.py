"""Time: timeslots, and the clocks of a place."""
