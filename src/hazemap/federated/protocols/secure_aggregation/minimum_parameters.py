"""What a client insists on, whatever a server says: a session below it is refused before anything is answered."""

from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Protocol

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.graph_degree import MOST_IN_A_SESSION, together, weakness
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import NoAddedNoise


class Judge(Protocol):
    """Decides whether the parameters of a session are good enough."""

    def check(self, terms: SessionParameters) -> None:
        """Refused, with the reason, unless they are."""
        ...


@dataclass(frozen=True)
class MinimumParameters:
    """The least protection a client takes part under.

    * at least `clients` are invited and `survivors` of them must have sent a vector before anything is opened;
    * if the part `corrupt` of the invited work with the server, degree and threshold still hide everybody, but for
      probability 2⁻⁴⁰ (`graph_degree.weakness`), in the mode that the terms claim;
    * the noise is enough without them: `parties`, whose shares make all of it, are at most the survivors less the
      corrupt; and at most `graph_degree.together` where the server may lie about who survived;
    * noise is added, unless what this client sends is a report that was randomised already (`randomised`).

    Whether the noise has the scale that was paid for, and the modulus follows from it, only the task can say.

    >>> from hazemap.privacy.distributed_noise import DistributedNoise
    >>> noise = DistributedNoise(Fraction(10), 4)
    >>> few = SessionParameters(Mode.MALICIOUS, bytes(32), bytes(32), 5, 4, 3, 5, 16, 20, noise, bytes(32), bytes(32))
    >>> MinimumParameters(clients=10, survivors=8).check(few)
    Traceback (most recent call last):
    hazemap.errors.Refused: a session of 5 clients is too small: at least 10 must be invited
    """

    clients: int = 100
    survivors: int = 50
    corrupt: Fraction = Fraction(1, 10)
    longest: int = 1 << 20
    """numbers in a vector, at most: what a client is willing to send"""
    most: int = MOST_IN_A_SESSION
    """clients, at most: what it is willing to find parameters for"""
    modes: frozenset[Mode] = frozenset([Mode.MALICIOUS])
    """a server is not trusted unless somebody says so"""
    randomised: bool = False
    """whether vectors are reports of which the noise is a part"""

    def __post_init__(self) -> None:
        if not 0 <= self.corrupt < 1 or not 1 <= self.survivors <= self.clients <= self.most or self.longest < 1:
            raise InputError("floors have 1 <= survivors <= clients <= most, 0 <= corrupt < 1, and a longest vector")

    def check(self, terms: SessionParameters) -> None:
        """Refused, with the reason, if these parameters fall short. At first about 1 ms; 30 ms in malicious mode."""
        if terms.mode not in self.modes:
            raise Refused(
                f"this client takes part in {_modes(self.modes)} sessions, not in {_modes({terms.mode})} ones"
            )
        if terms.clients < self.clients:
            raise Refused(f"a session of {terms.clients} clients is too small: at least {self.clients} must be invited")
        if terms.clients > self.most:
            raise Refused(f"a session of {terms.clients} clients is too large: at most {self.most} may be invited")
        if terms.survivors < self.survivors:
            raise Refused(f"a sum over {terms.survivors} clients is too small: at least {self.survivors} must be in it")
        if terms.size > self.longest:
            raise Refused(f"a vector of {terms.size:,} numbers is too long: at most {self.longest:,} are sent")
        self._check_graph(terms)
        self._check_noise(terms)

    def _check_graph(self, terms: SessionParameters) -> None:
        dropout = Fraction(terms.clients - terms.survivors, terms.clients)
        try:
            reason = weakness(terms.clients, terms.degree, terms.threshold, self.corrupt, dropout, terms.mode)
        except InputError as error:
            raise Refused(f"nothing is known of the safety of such a session: {error}") from error
        if reason is not None:
            raise Refused(f"{reason}, if {self.corrupt} of the clients work with the server")

    def _check_noise(self, terms: SessionParameters) -> None:
        if isinstance(terms.noise, NoAddedNoise) and not self.randomised:
            raise Refused("no noise is to be added, but what this client sends is not randomised: it would be exact")
        honest = terms.survivors - floor(terms.clients * self.corrupt)
        if terms.mode is Mode.MALICIOUS:
            dropout = Fraction(terms.clients - terms.survivors, terms.clients)
            group = together(terms.clients, terms.degree, terms.threshold, self.corrupt, dropout)
            honest = min(honest, group)
        if terms.noise.parties > honest:
            raise Refused(
                f"the noise is complete with the shares of {terms.noise.parties} clients, but only {honest} honest "
                "ones are certain to be in a sum"
            )


def _modes(modes: Set[Mode]) -> str:
    return " and ".join(mode.name.lower().replace("_", "-") for mode in Mode if mode in modes)
