"""Every figure and table of the papers, and where it is measured again: `python -m research.papers`."""
