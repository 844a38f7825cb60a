"""Sums through a shuffler: people split what they add in parts, and only the sum of all parts says anything."""
