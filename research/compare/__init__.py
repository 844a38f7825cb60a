"""The experiments of papers as comparisons: `python -m research.compare NAME --data FOLDER`."""
