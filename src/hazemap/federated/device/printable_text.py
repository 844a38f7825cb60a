"""Words from a server as a person reads them: one line, no letters that move a cursor or hide others, and not many.

Whatever a server writes may be shown in a terminal, and stays in a log on the person's disk.
"""

LONGEST_LINE = 2_000


def one_line(words: str, most: int = LONGEST_LINE) -> str:
    r"""The words without line ends and without letters that cannot be printed, shortened. O(most).

    >>> one_line("a map\n2026-03-01  nothing \x1b[1Acharged"), one_line("x" * 5_000_000, 8)
    ('a map 2026-03-01 nothing [1Acharged', 'xxxxxxxx…')
    """
    start = words[: most + 1]
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in start).split())
    return f"{plain[:most]}…" if len(words) > most else plain
