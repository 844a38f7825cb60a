"""Reports that servers other than the coordinator carry: made, kept, and sent until they have arrived."""
