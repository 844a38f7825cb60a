"""A release's privacy statement as a page for people who read no code: lawyers, data protection officers."""
