"""What: how a value is quantized, binned and shared out over counters, in cells and timeslots."""
