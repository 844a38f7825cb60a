"""How few people a sum can be over that a server opens which breaks the rules.

In malicious mode it sees who drew whom, and may then tell each client another story of who shared and who dropped out.
Say it opens a sum over the honest set S, joined by pairwise masks. Let i be in S, and c of the k clients N that i drew
corrupt; every client needs t of its N to sign and to tell.

1. Nobody's both secrets are known, if c < 2t − k for every honest client (`degrees`).
2. An honest j that tells shares has seen t assents to its own survival, and whoever gave one gives no share of j's
   masking key. If t others did, 2t ≤ k + c, with the c of j. So the key of a j that told shares stays unknown.
3. i's self-mask was opened: t of N told their share of its seed. Each honest one had i's signature that it masked
   among the same sharers, itself one of them. So i has a mask with each of these t, and each is corrupt or its key is
   unknown, by 2. What is honest of them must be in S as well, or its mask with i would not cancel.

So every i in S drew t or more from S and the corrupt. For one set S of s people the probability of that is at most
P(X ≥ t)ˢ, X hypergeometric with A + s − 1 marked, and there are C(n − A, s) sets, n clients with A corrupt. The union
over sets is what the server may choose from after it has seen the graph. Its rolls, from which clients draw, hold
n − D clients at least, and a client draws by itself: the bound holds in whatever order it asks them.
"""

from math import exp, inf, log

from hazemap.protocols.secure_aggregation.hypergeometric_tails import at_least, log_choose
from hazemap.protocols.secure_aggregation.neighbour_probabilities import SECURITY, NeighbourProbabilities


def smallest_group(laws: NeighbourProbabilities, degree: int, threshold: int, enough: int) -> int:
    """How many honest people are in any sum at least, but for probability 2⁻⁴⁰; `enough` if they are no fewer.

    The first size s at which the union bound over sizes up to s passes 2⁻⁴¹; 1 unless condition 1 above holds but for
    2⁻⁴¹. Sizes go in blocks of a thousandth, each counted at its worst: 10 ms for 10,000 clients.
    """
    honest, total, size = laws.clients - laws.corrupt, 0.0, 1
    enough = min(enough, honest)
    if threshold < laws.least_threshold(degree):
        return 1
    while size < enough:
        last = min(size + size // 1000, honest)
        total += (last - size + 1) * exp(min(0.0, log_chance(laws, degree, threshold, size, last)))
        if total >= SECURITY:
            return size
        size = last + 1
    return enough


def log_chance(laws: NeighbourProbabilities, degree: int, threshold: int, first: int, last: int) -> float:
    """How likely a closed set of a size from `first` to `last` is, at most: a logarithm, each factor at its worst."""
    honest = laws.clients - laws.corrupt
    inside = min(laws.corrupt + last - 1, laws.drawn_from)
    drawn_in = at_least(laws.drawn_from, inside, min(degree, laws.drawn_from), threshold)
    sets = log_choose(honest, min(max(first, honest // 2), last))
    return sets + first * log(drawn_in) if drawn_in else -inf
