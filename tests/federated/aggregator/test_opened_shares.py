"""A walk opens each report once, and only what is bound to the same data is taken for the same share."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from tests.federated.aggregator.test_walk_questions import (
    ALL,
    FINE,
    HOUR,
    PATHS,
    QUARTERS,
    asked,
    part,
    truth,
    walkers,
    without_noise,
)
from tests.federated.aggregator.two_servers import TwoServers, key_of

from hazemap.errors import Refused
from hazemap.federated.aggregator.hpke_key_ring import DecryptionKeyRing, OpenedShares, RememberingKeys
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext

CONFIG, PAIR = key_of(1, 1)


@dataclass
class Counted:
    """Keys that count what they open."""

    keys: DecryptionKeyRing
    opened: int = 0

    def knows(self, config_id):
        return self.keys.knows(config_id)

    def open(self, sealed, info, aad):
        self.opened += 1
        return self.keys.open(sealed, info, aad)


def ring():
    from hazemap.federated.aggregator.hpke_key_ring import HpkeKey

    return Counted(DecryptionKeyRing.of([HpkeKey(CONFIG, PAIR, 0)]))


def sealed(plain=b"a share", info=b"info", aad=b"aad"):
    return CONFIG.seal(info, aad, plain, bytes(range(32)))


def test_a_share_is_opened_once_and_only_for_what_it_is_bound_to():
    keys = ring()
    remembering, one = RememberingKeys(keys, OpenedShares()), sealed()
    assert [remembering.open(one, b"info", b"aad") for _ in range(3)] == [b"a share"] * 3
    assert keys.opened == 1 and remembering.knows(1) and not remembering.knows(2)
    other = replace(one, payload=one.payload[:-1] + bytes([one.payload[-1] ^ 1]))
    for wrong in (
        (one, b"info", b"aaf"),
        (one, b"inf", b"oaad"),
        (one, b"infoa", b"ad"),
        (replace(one, config_id=2), b"info", b"aad"),
        (other, b"info", b"aad"),
        (HpkeCiphertext(1, one.enc + one.payload[:1], one.payload[1:]), b"info", b"aad"),
    ):
        for _ in range(2):
            with pytest.raises(Refused):
                remembering.open(*wrong)
    assert keys.opened == 1 + 2 * 6, "what does not open is not kept"


def test_no_more_is_kept_than_is_allowed_and_what_is_gone_is_opened_again():
    keys, shares = ring(), OpenedShares(most=3 * (100 + 256))
    remembering = RememberingKeys(keys, shares)
    every = [sealed(bytes([number]) * 100) for number in range(5)]
    for each in every:
        remembering.open(each, b"info", b"aad")
    assert shares.size == 3 * (100 + 256)
    assert remembering.open(every[4], b"info", b"aad") == b"\4" * 100 and keys.opened == 5
    assert remembering.open(every[0], b"info", b"aad") == b"\0" * 100 and keys.opened == 6
    large = sealed(bytes(4_000))
    assert remembering.open(large, b"info", b"aad") == bytes(4_000)
    assert shares.size == 0, "what is larger than all that is allowed is not kept either"


def test_a_walk_opens_each_report_once_at_each_server_and_again_after_a_restart():
    two = walkers()
    two.rings = {role: Counted(keys) for role, keys in two.rings.items()}
    two.upload(*(two.report(path) for path in PATHS))
    quarter = Fraction(1, 4)
    for number, (level, cells, some) in enumerate(((1, ALL, QUARTERS), (3, FINE, part("1010", "1011")))):
        found = two.collect(HOUR, 1, asked(level, cells, some, share=quarter))
        assert without_noise(two, number, found.sums) == truth(some)
        assert {keys.opened for keys in two.rings.values()} == {len(PATHS)}
    for server in (two.leader, two.helper):
        server.start()
    assert two.collect(HOUR, 1, asked(4, (0b10101,), part("10101"), share=quarter)).count == len(PATHS)
    assert {keys.opened for keys in two.rings.values()} == {2 * len(PATHS)}
    two.close()


def test_reports_that_are_aggregated_once_are_not_kept():
    two = TwoServers()
    two.upload(*(two.report(1) for _ in range(4)))
    assert two.collect(HOUR).sums == (4,)
    assert two.leader.service._opened.size == two.helper.service._opened.size == 0
    two.close()
