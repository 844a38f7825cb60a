"""Who is at fault where a holder and a dealer do not fit: nobody else can say which of the two it was."""

from collections import Counter
from collections.abc import Iterable


def blamed(quarrels: Iterable[tuple[int, int]]) -> dict[int, str]:
    """A small set of clients that explains all quarrels, each (holder, dealer), with the reasons.

    A share that is wrong or missing was spoilt by its holder or dealt so. Whoever is in most quarrels is named first,
    with them all, and so on: liars are few, and quarrel with many. In a quarrel of one against one the holder is
    named, and its reason says so.

    >>> blamed([(1, 7), (2, 7), (3, 7), (4, 5)])
    {7: 'dealt 3 shares that are wrong or missing', 4: 'told a wrong share of client 5, or none (or 5 dealt it so)'}
    """
    left = set(quarrels)
    named = {}
    while left:
        told, dealt = Counter(holder for holder, _ in left), Counter(dealer for _, dealer in left)
        worst = max(
            told.keys() | dealt.keys(), key=lambda client: (told[client] + dealt[client], told[client], -client)
        )
        if told[worst] + dealt[worst] == 1:  # then `told`: of two that are in one quarrel the holder comes first
            [dealer] = [dealer for holder, dealer in left if holder == worst]
            named[worst] = f"told a wrong share of client {dealer}, or none (or {dealer} dealt it so)"
        else:
            reasons = [(told[worst], "told"), (dealt[worst], "dealt")]
            named[worst] = ", ".join(
                f"{word} {count} shares that are wrong or missing" for count, word in reasons if count
            )
        left = {quarrel for quarrel in left if worst not in quarrel}
    return named
