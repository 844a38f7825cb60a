from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.protocols.secure_aggregation.people import session

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.graph_degree import degree_and_threshold, together
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import DistributedNoise


def terms(mode: Mode, clients: int = 1000, corrupt: Fraction = Fraction(1, 20)) -> SessionParameters:
    """What `degrees` recommends, with all the noise that it allows."""
    dropout = Fraction(1, 10)
    degree, threshold = degree_and_threshold(clients, corrupt, dropout, mode)
    survivors = clients - clients // 10
    honest = survivors - int(clients * corrupt)
    if mode is Mode.MALICIOUS:
        honest = min(honest, together(clients, degree, threshold, corrupt, dropout))
    shape = {"clients": clients, "degree": degree, "threshold": threshold, "survivors": survivors}
    return replace(session(3, mode, survivors=3).terms, **shape, noise=DistributedNoise(Fraction(20), honest))


@pytest.mark.parametrize("mode", Mode)
def test_recommended_parameters_pass_and_anything_less_does_not(mode):
    good, both = terms(mode), frozenset(Mode)
    floors = MinimumParameters(corrupt=Fraction(1, 20), modes=both)
    floors.check(good)
    for change, reason in (
        ({"noise": DistributedNoise(Fraction(20), good.noise.parties + 1)}, "certain to be in a sum"),
        ({"threshold": good.degree // 3}, "threshold"),
        ({"size": 2**20 + 1}, "too long"),
    ):
        with pytest.raises(Refused, match=reason):
            floors.check(replace(good, **change))
    with pytest.raises(Refused, match="work with the server"):
        MinimumParameters(corrupt=Fraction(1, 4), modes=both).check(good)
    with pytest.raises(Refused, match="too small"):
        MinimumParameters(clients=1001, modes=both).check(good)
    with pytest.raises(Refused, match="too small"):
        MinimumParameters(survivors=901, clients=1000, modes=both).check(good)


def test_in_malicious_mode_the_noise_is_complete_in_every_group_that_may_be_opened():
    good = terms(Mode.MALICIOUS)
    assert good.noise.parties < good.survivors - 50
    with pytest.raises(Refused, match="honest ones"):
        MinimumParameters(corrupt=Fraction(1, 20)).check(
            replace(good, noise=DistributedNoise(Fraction(20), good.survivors - 50))
        )


def test_a_server_is_not_trusted_unless_somebody_says_so():
    with pytest.raises(Refused, match="takes part in malicious sessions, not in semi-honest ones"):
        MinimumParameters(corrupt=Fraction(1, 20)).check(terms(Mode.SEMI_HONEST))


def test_floors_that_contradict_themselves_are_refused():
    for wrong in ({"clients": 0}, {"survivors": 101}, {"corrupt": Fraction(1)}, {"longest": 0}, {"most": 99}):
        with pytest.raises(InputError):
            MinimumParameters(**wrong)
