"""What to expect of a trust model, before anybody is asked."""
