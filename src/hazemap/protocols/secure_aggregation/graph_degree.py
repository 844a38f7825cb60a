"""How many peers must hold shares of a client's secrets, and how many of them tell one: degree k and threshold t.

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

Neighbours are drawn without replacement, so all counts are hypergeometric (`tails`); a union over n clients gives
the bounds. `published` is the finder of the fcp library (Google, graph_parameter_finder.cc), row by row. Sessions
are held to more, for it counts a client among its own neighbours and lets all drop out after the graph is drawn:

* An honest client's neighbours are drawn from the others who sent keys, and the corrupt never drop out: from
  n − D − 1, A of them corrupt. The survivors' tail is worst where all drop out late: from n − 1, D of them gone.
* In small sessions, where no ring is enough, everybody is everybody's neighbour: nothing is left to chance.
* In malicious mode clients draw their neighbours, and the server sees the graph before it says who dropped out: the
  sum may be of a part of the survivors, but not of a small one (`together`).
"""

from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import floor, log

from hazemap.errors import InputError
from hazemap.protocols.secure_aggregation.neighbour_probabilities import SECURITY, NeighbourProbabilities
from hazemap.protocols.secure_aggregation.session_parameters import Mode
from hazemap.protocols.secure_aggregation.smallest_group import log_chance, smallest_group

MOST_CLIENTS = 1_000_000
"""Up to here the tails are known to their last digits that matter."""
MOST_DRAWN = 4_096
"""Neighbours that a client has at most: beyond, masks cost it more than the vector is worth."""


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
            f"no degree and threshold protect {clients} people of whom {corrupt} may work with the server and "
            f"{dropout} may drop out, in mode {mode.name}: ask more people, or assume less of both"
        )
    return found


@lru_cache(maxsize=256, typed=True)
def weakness(clients: int, degree: int, threshold: int, corrupt: Fraction, dropout: Fraction, mode: Mode) -> str | None:
    """Why nobody should take part under these parameters; None where they are safe.

    Whether enough neighbours survive is not asked: if too few do, nothing is opened. In malicious mode the noise has
    to be complete among `together` people, which is to be asked as well.

    >>> weakness(1000, 36, 19, Fraction(1, 20), Fraction(1, 10), Mode.SEMI_HONEST)
    >>> weakness(1000, 36, 12, Fraction(1, 20), Fraction(1, 10), Mode.SEMI_HONEST)
    'a threshold of 12 is too low: 19 of 36 neighbours must tell a secret'
    """
    laws = _laws(clients, corrupt, dropout, mode)
    if not 2 <= threshold <= degree < clients:
        return f"{threshold} of {degree} neighbours among {clients - 1} others is no threshold"
    if degree > MOST_DRAWN:
        return f"{degree} neighbours are more than the {MOST_DRAWN} that a client has at most"
    least = laws.least_threshold(degree)
    if threshold < least:
        return f"a threshold of {threshold} is too low: {least} of {degree} neighbours must tell a secret"
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
    """How many honest people are in any sum that a malicious server opens, but for probability 2⁻⁴⁰ (`groups`).

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
