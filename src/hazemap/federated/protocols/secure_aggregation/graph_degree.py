"""How many peers must hold shares of a client's secrets, and how many reveal one: degree k and threshold t.

At most A of the n invited work with the server and at most D drop out. As the server must learn nothing but the
sum, and must learn that, three things may go wrong (Bell et al. 2020, section 3: E1, E2, E3 of a good graph):

* *Corruption.* t corrupt neighbours of an honest client open its self-mask and its key alike: t of them must be as
  rare as 2⁻⁴¹. A server that breaks the rules may tell some honest neighbours that a client dropped out and others
  that it did not. Of the honest neighbours h = k − c each gives one share, so it has both secrets only if
  2t ≤ h + 2c = k + c: corrupt neighbours c ≥ 2t − k must be as rare.
* *Connection.* Pairwise masks hide a sum only among clients that a path of honest survivors joins. To cut a ring of
  degree k, all k/2 consecutive places must be bad twice: of n(n−k−1)/2 such pairs of gaps, each is all bad with
  probability C(n−k, b−k)/C(n, b), b = A + D. The sum over the pairs must be below 2⁻⁴¹.
* *Survival.* Some client with fewer than t surviving neighbours must be rarer than 2⁻²⁰: the round would fail.

Neighbours are drawn without replacement, so all counts are hypergeometric (`at_least`); a union over n clients gives
the bounds. `published` is the finder of the fcp library (Google, graph_parameter_finder.cc), row by row. Sessions
are held to more, for it counts a client among its own neighbours and lets all drop out after the graph is drawn:

* An honest client's neighbours are drawn from the others who sent keys, and the corrupt never drop out: from
  n − D − 1, A of them corrupt. The survivors' tail is worst where all drop out late: from n − 1, D of them gone.
* In small sessions, where no ring is enough, everybody is everybody's neighbour: nothing is left to chance.
* In malicious mode clients draw their neighbours, and the server sees the graph before it says who dropped out: the
  sum may be of a part of the survivors, but not of a small one (`together`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import exp, floor, inf, lgamma, log, log1p

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode

_OUTWARD = log1p(1e-6)


def at_least(population: int, marked: int, drawn: int, least: int) -> float:
    """P(X >= least) where `drawn` of `population` are drawn without replacement and X of them are among the `marked`.

    Never too small, and 1 up to the mean, where it is at least 1/2. O(√drawn) terms in practice. Floats, for these
    numbers describe how safe parameters are and never decide a draw. The logarithm of a factorial of up to 10⁶ is off
    by less than 10⁻⁸, nine of them make a term, and every tail is raised by a millionth of itself.

    >>> round(at_least(52, 4, 13, 2), 4)  # two aces or more in a hand of bridge
    0.2573
    """
    most = min(marked, drawn)
    if least <= max(0, drawn + marked - population) or least * population <= marked * drawn:
        return 1.0
    if least > most:
        return 0.0
    rest = population - marked
    term = total = exp(_choose(marked, least) + _choose(rest, drawn - least) - _choose(population, drawn) + _OUTWARD)
    for x in range(least, most):
        term *= (marked - x) / (x + 1) * ((drawn - x) / (rest - drawn + x + 1))
        total += term
        if term < total * 1e-17:  # beyond the mean terms fall ever faster: what is left is lost in the rounding
            break
    return min(total, 1.0)


def log_all_gone(population: int, gone: int, places: int) -> float:
    """How likely all of `places` given members are among the `gone` of `population`: ln of (gone)ₖ / (population)ₖ."""
    if places > gone:
        return -inf
    return (
        lgamma(gone + 1)
        - lgamma(gone - places + 1)
        - lgamma(population + 1)
        + lgamma(population - places + 1)
        + _OUTWARD
    )


def log_choose(n: int, k: int) -> float:
    """How many ways there are to choose k of n: the logarithm, rounded up."""
    return _choose(n, k) + _OUTWARD


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


SECURITY = 2.0**-41
"""How likely each of two bad events may be at most, so that both together stay below 2⁻⁴⁰."""
NEGLIGIBLE = SECURITY * 2.0**-60
"""What is added to such a chance without a change in its 53 bits."""
CORRECTNESS = 2.0**-20
"""How likely a round among honest people may fail at most."""


@dataclass(frozen=True)
class NeighbourProbabilities:
    """The laws of the number of corrupt and of missing neighbours, and what a finder asks of them.

    Of `clients` invited, `corrupt` work with a server that `lies`, or does not, and `missing` drop out.

    >>> everybody = NeighbourProbabilities(1000, corrupt=50, missing=100, lies=False, drawn_from=899, staying=999)
    >>> everybody.least_threshold(36), everybody.most_threshold(36), everybody.ring_holds(36)
    (19, 19, True)
    """

    clients: int
    corrupt: int
    missing: int
    lies: bool
    drawn_from: int
    """how many an honest client's neighbours are drawn from, where most are corrupt"""
    staying: int
    """how many they are drawn from, where most drop out later"""

    def least_threshold(self, degree: int) -> int:
        """The least t that corrupt neighbours do not reach (or 2t, k + c, where the server lies); at least 1."""
        drawn = min(degree, self.drawn_from)
        fails, holds = -1, min(self.corrupt, drawn)  # the corrupt are at most this many, but for SECURITY / n
        while holds - fails > 1:
            middle = (fails + holds) // 2
            if at_least(self.drawn_from, self.corrupt, drawn, middle + 1) < SECURITY / self.clients:
                holds = middle
            else:
                fails = middle
        return (degree + holds) // 2 + 1 if self.lies else holds + 1

    def most_threshold(self, degree: int) -> int:
        """The largest t that every client's surviving neighbours reach, but for CORRECTNESS; 0 if there is none."""
        holds, fails = 0, degree + 1
        while fails - holds > 1:
            middle = (fails + holds) // 2
            if at_least(self.staying, self.missing, degree, degree - middle + 1) < CORRECTNESS / self.clients:
                holds = middle
            else:
                fails = middle
        return holds

    def ring_holds(self, degree: int) -> bool:
        """Whether the honest survivors on a ring of everybody are connected, but for SECURITY."""
        pairs = log(self.clients) + log(self.clients - degree - 1) - log(2)
        return pairs + log_all_gone(self.clients, self.corrupt + self.missing, degree) < log(SECURITY)

    def rings(self, last: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Ascending degrees of connected rings, up to `last`, with their least and most threshold; no hopeless ones.

        Two draws more cannot lower the number of corrupt neighbours, nor add more than two survivors. So of what
        the most threshold lacks, a step of 2 in the degree makes up for at most 2, or 1 where the server lies.
        """
        degree, step = 2, 1 if self.lies else 2
        while degree < self.clients - 1 and (last is None or degree <= last):
            lacks = 1
            if self.ring_holds(degree):
                least, most = self.least_threshold(degree), self.most_threshold(degree)
                yield degree, least, most
                lacks = least - most
            degree += 2 * max(1, -(-lacks // step))


MOST_CLIENTS = 1_000_000
"""Up to here the tails are known to their last digits that matter."""
MOST_DRAWN = 1_024
"""Neighbours that a client has at most: beyond, masks cost it more than the vector is worth."""
MOST_IN_A_SESSION = 10_000
"""Clients of a session at most. Whoever is offered one has to find its parameters, in less than 0.1 s of CPU."""


class Adversary(Enum):
    """Whom the published table is about: nobody, a curious server, or one that also lies about who dropped out.

    >>> Adversary["CURIOUS_SERVER"].lies
    False
    """

    NONE = "nobody"
    CURIOUS_SERVER = "a server that follows the protocol"
    SEMI_MALICIOUS_SERVER = "a server that tells clients different survivors, on a graph that it draws fairly"

    @property
    def lies(self) -> bool:
        """Whether it may ask for both secrets of a client."""
        return self is Adversary.SEMI_MALICIOUS_SERVER


def published(clients: int, corrupt: Fraction, dropout: Fraction, adversary: Adversary) -> tuple[int, int]:
    """Degree and threshold as the fcp library publishes them; (0, 0) where it has none.

    It refuses parts beyond 9/10 together (the dropout counted twice where the server lies), and raises a threshold
    of 1 to 2 without counting survivors again, so that a session of 10 in its table fails too often.

    >>> published(1000, Fraction("0.05"), Fraction("0.33"), Adversary.SEMI_MALICIOUS_SERVER)
    (398, 223)
    """
    believable = clients >= 1 and 0 <= corrupt < 1 and 0 <= dropout < 1 and clients <= MOST_CLIENTS
    if not believable or corrupt + dropout * (1 + adversary.lies) > Fraction(9, 10):
        return 0, 0
    if adversary is Adversary.NONE and corrupt:
        return 0, 0
    laws = NeighbourProbabilities(
        clients, floor(clients * corrupt), floor(clients * dropout), adversary.lies, clients, clients
    )
    return next(((degree, max(2, least)) for degree, least, most in laws.rings() if least <= most), (0, 0))


@lru_cache(maxsize=256, typed=True)
def degree_and_threshold(clients: int, corrupt: Fraction, dropout: Fraction, mode: Mode) -> tuple[int, int]:
    """The degree and threshold of a session; InputError if even with everybody a neighbour there are none.

    Semi-honest: the least degree, and the least threshold. Malicious: a degree at which every sum is over half of the
    honest survivors or more (`together`), and one less would not do; and the largest threshold that the dropouts
    allow, which is what makes groups large. 1 ms for 10,000 clients, 40 ms in malicious mode.

    >>> degree_and_threshold(1000, Fraction(1, 20), Fraction(1, 10), Mode.SEMI_HONEST)
    (36, 19)
    """
    laws = _laws(clients, corrupt, dropout, mode)
    found = _among_the_lying(laws) if laws.lies else _on_a_ring(laws)
    if found is None:
        raise InputError(
            f"no degree and threshold protect {clients} people if a part of {corrupt} may work with the server and "
            f"{dropout} may drop out, in mode {mode.name}: ask more people, or assume less of both"
        )
    return found


@lru_cache(maxsize=256, typed=True)
def weakness(clients: int, degree: int, threshold: int, corrupt: Fraction, dropout: Fraction, mode: Mode) -> str | None:
    """Why these parameters are not safe; None where they are.

    Whether enough neighbours survive is not asked: if too few do, nothing is opened. In malicious mode the noise has
    to be complete among `together` people as well: check that too.

    >>> weakness(1000, 36, 19, Fraction(1, 20), Fraction(1, 10), Mode.SEMI_HONEST)
    >>> weakness(1000, 36, 12, Fraction(1, 20), Fraction(1, 10), Mode.SEMI_HONEST)
    'a threshold of 12 is too low: a secret must take 19 of 36 neighbours'
    """
    laws = _laws(clients, corrupt, dropout, mode)
    if not 2 <= threshold <= degree < clients:
        return f"2 <= threshold <= degree < clients must hold; found {threshold}, {degree} and {clients}"
    if degree > MOST_DRAWN:
        return f"{degree} neighbours are more than the {MOST_DRAWN} that a client has at most"
    least = laws.least_threshold(degree)
    if threshold < least:
        return f"a threshold of {threshold} is too low: a secret must take {least} of {degree} neighbours"
    if not laws.lies and degree < clients - 1 and not laws.ring_holds(degree):
        return f"{degree} neighbours are too few: the honest survivors of {clients} clients may fall into parts"
    return None


def secure(clients: int, degree: int, threshold: int, corrupt: Fraction, dropout: Fraction, mode: Mode) -> bool:
    """Whether a session under these parameters has no `weakness`.

    >>> secure(1000, 36, 19, Fraction(1, 20), Fraction(1, 10), Mode.MALICIOUS)
    False
    """
    return weakness(clients, degree, threshold, corrupt, dropout, mode) is None


@lru_cache(maxsize=256, typed=True)
def together(clients: int, degree: int, threshold: int, corrupt: Fraction, dropout: Fraction) -> int:
    """How many honest people are in any sum that a malicious server opens, but for probability 2⁻⁴⁰ (`smallest_group`).

    Each group's noise must be complete: `noise.parties` of the terms is at most this in malicious mode.

    >>> together(1000, 52, 37, Fraction(1, 20), Fraction(1, 20))
    590
    """
    return smallest_group(_laws(clients, corrupt, dropout, Mode.MALICIOUS), degree, threshold, clients)


def _on_a_ring(laws: NeighbourProbabilities) -> tuple[int, int] | None:
    for degree, least, most in laws.rings(MOST_DRAWN):
        if max(2, least) <= most:
            return degree, max(2, least)
    degree = laws.clients - 1
    if degree > MOST_DRAWN:
        return None
    least = max(2, laws.least_threshold(degree))
    return (degree, least) if least <= laws.most_threshold(degree) else None


def _among_the_lying(laws: NeighbourProbabilities) -> tuple[int, int] | None:
    """The degree by doubling and halving: what holds does not hold for one neighbour less."""
    fails, holds, last = 1, 2, min(laws.clients - 1, MOST_DRAWN)
    while not _large_groups(laws, holds):
        if holds >= last:
            return None
        fails, holds = holds, min(2 * holds, last)
    while holds - fails > 1:
        middle = (fails + holds) // 2
        if _large_groups(laws, middle):
            holds = middle
        else:
            fails = middle
    return holds, laws.most_threshold(holds)


def _large_groups(laws: NeighbourProbabilities, degree: int) -> bool:
    """Whether a lying server opens no sum over less than half of the honest survivors, at the most threshold."""
    threshold = laws.most_threshold(degree)
    wanted = -(-max(1, laws.clients - laws.missing - laws.corrupt) // 2)
    if not 2 <= threshold <= degree or threshold < laws.least_threshold(degree):
        return False
    if wanted > 1 and log_chance(laws, degree, threshold, wanted - 1, wanted - 1) >= log(SECURITY):
        return False  # the largest size alone: most degrees that fail do so here, at little cost
    return smallest_group(laws, degree, threshold, wanted) >= wanted


def _laws(clients: int, corrupt: Fraction, dropout: Fraction, mode: Mode) -> NeighbourProbabilities:
    if not 2 <= clients <= MOST_CLIENTS or not 0 <= corrupt < 1 or not 0 <= dropout < 1:
        raise InputError(
            f"degrees are known for 2 … {MOST_CLIENTS:,} clients and parts from 0 to below 1, not for {clients}, "
            f"{corrupt} and {dropout}"
        )
    bad, gone = floor(clients * corrupt), floor(clients * dropout)
    return NeighbourProbabilities(clients, bad, gone, mode is Mode.MALICIOUS, max(bad, clients - gone - 1), clients - 1)


def smallest_group(laws: NeighbourProbabilities, degree: int, threshold: int, enough: int) -> int:
    """How many honest people are in any sum at least, but for probability 2⁻⁴⁰; `enough` if they are no fewer.

    A server that breaks the rules sees, in malicious mode, who drew whom, and may then tell each client another story
    of who shared and who dropped out. Say it opens a sum over the honest set S, joined by pairwise masks. Let i be in
    S, and c of the k clients N that i drew corrupt; every client needs t of its N to sign and to tell.

    1. Nobody's both secrets are known, if c < 2t − k for every honest client (see above).
    2. An honest j that tells shares has seen t assents to its own survival, and whoever gave one gives no share of j's
       masking key. If t others did, 2t ≤ k + c, with the c of j. So the key of a j that told shares stays unknown.
    3. i's self-mask was opened: t of N told their share of its seed. Each honest one had i's signature that it masked
       among the same sharers, itself one of them. So i has a mask with each of these t, and each is corrupt or its key
       is unknown, by 2. What is honest of them must be in S as well, or its mask with i would not cancel.

    So every i in S drew t or more from S and the corrupt. For one set S of s people the probability of that is at most
    P(X ≥ t)ˢ, X hypergeometric with A + s − 1 marked, and there are C(n − A, s) sets, n clients with A corrupt. The
    union over sets is what the server may choose from after it has seen the graph. Its rolls, from which clients draw,
    hold n − D clients at least, and a client draws by itself: the bound holds in whatever order it asks them.

    The result is the first size s at which the union bound over sizes up to s passes 2⁻⁴¹; 1 unless condition 1 holds
    but for 2⁻⁴¹. Sizes go in blocks of a thousandth, each counted at its worst: 2 ms for 10,000 clients. Blocks of a
    twentieth come first: their bound is larger, so where it holds the finer one does. Sizes whose chances add up to
    less than 2⁻¹⁰¹ by the larger bound are taken together as that.
    """
    enough = min(enough, laws.clients - laws.corrupt)
    if threshold < laws.least_threshold(degree):
        return 1
    found, rare = _closed_below(laws, degree, threshold, enough, 20)
    return enough if found == enough else _closed_below(laws, degree, threshold, enough, 1000, rare)[0]


def _closed_below(
    laws: NeighbourProbabilities, degree: int, threshold: int, enough: int, blocks: int, rare: int = 0
) -> tuple[int, int]:
    """The first size at which the union bound passes 2⁻⁴¹, by blocks of such a part of a size; at most `enough`.

    And the last size up to which it stays below 2⁻¹⁰¹, far less than its rounding. Who knows one (`rare`) passes it on.
    """
    honest, total, size, passed = laws.clients - laws.corrupt, NEGLIGIBLE if rare else 0.0, 1, rare
    while size < enough:
        last = min(size + size // blocks, honest)
        if last > rare:
            total += (last - size + 1) * exp(min(0.0, log_chance(laws, degree, threshold, size, last)))
        if total >= SECURITY:
            return size, passed
        if total < NEGLIGIBLE:
            passed = last
        size = last + 1
    return enough, passed


def log_chance(laws: NeighbourProbabilities, degree: int, threshold: int, first: int, last: int) -> float:
    """How likely a closed set of a size from `first` to `last` is, at most: a logarithm, each factor at its worst."""
    honest = laws.clients - laws.corrupt
    inside = min(laws.corrupt + last - 1, laws.drawn_from)
    drawn_in = at_least(laws.drawn_from, inside, min(degree, laws.drawn_from), threshold)
    sets = log_choose(honest, min(max(first, honest // 2), last))
    return sets + first * log(drawn_in) if drawn_in else -inf
