"""`python -m research.papers`: write docs/results/papers.md."""

from research.papers.papers_page import write

if __name__ == "__main__":
    print(write())
