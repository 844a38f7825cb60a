"""No key, share, row or vector in a log or in anything's repr."""

import gc
import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.federated.protocols.secure_aggregation.people import Session, session

from hazemap.errors import NotOpened
from hazemap.federated.protocols.secure_aggregation.client import ClientState, KnownPeer
from hazemap.federated.protocols.secure_aggregation.messages import Masked, Sealed, SecureSumMessage, Stage, Unmask
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE


class Secrets:
    """Everything that must not be seen, as it comes by."""

    def __init__(self) -> None:
        self.bytes: set[bytes] = set()
        self.numbers: set[str] = set()

    def watch(self, here: Session) -> None:
        self.bytes |= {identity.to_bytes() for identity in here.identities}
        for client in here.clients:
            memory = client._memory
            if memory is None:
                continue
            self.bytes |= {secret for secret in (memory.sealing, memory.masking, memory.seed) if secret}
            self.bytes |= {peer.letter for peer in memory.known() if any(peer.letter)}
            if memory.shares:
                self.bytes |= {share for both in memory.dealt().values() for share in both}
            if memory.stage is Stage.MASKED:
                self.bytes.add(Masked.decode(memory.reply).vector)
        self.numbers |= {str(number) for vector in here.vectors for number in vector.tolist()}

    def check(self, text: str) -> None:
        for secret in self.bytes:
            for shown in (
                secret.hex(),
                repr(secret)[2:-1],
                str(list(secret))[1:-1],
                str(int.from_bytes(secret, "big")),
            ):
                assert shown not in text
            assert secret[:6].hex() not in text
        assert not self.numbers & set(re.findall(r"-?\d+", text))


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
def test_nothing_secret_is_logged_or_shown_in_whole_sessions_with_cheats(mode, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="hazemap.federated.protocols.secure_aggregation")
    here = session(11, mode, threshold=4, survivors=5, size=3)
    here.vectors[:] = np.random.default_rng(1).integers(10_000, 16_000, here.vectors.shape)
    secrets = Secrets()
    here.cheats[2, Stage.UNMASK] = lambda reply: replace(
        (message := Unmask.decode(reply)), seeds={p: bytes(SHARE) for p in message.seeds}
    ).encode()
    here.cheats[3, Stage.SHARES] = lambda reply: Sealed(
        here.terms.session, {p: bytes(94) if p < 2 else letter for p, letter in Sealed.decode(reply).letters.items()}
    ).encode()
    here.cheats[4, Stage.UNMASK] = lambda reply: reply[:-1]
    shown = []
    while here.server.stage < Stage.OPENED:
        before = {position: here.server.message_for(position) for position in range(11)}
        here.stage(without=[5] if here.server.stage >= Stage.MASKED else [])
        secrets.watch(here)
        for position, message in before.items():  # refusals, logged too
            for wrong in (message, message[:-1] if message else None, b"\x01\x05"):
                if wrong is not None:
                    try:
                        here.clients[position].receive(wrong)
                    except Exception as error:  # whatever it says, it must not tell
                        shown.append(str(error))
        shown += [repr(client) for client in here.clients] + [repr(here.server), repr(here.server.culprits)]
        shown += [
            repr(thing) for thing in gc.get_objects() if isinstance(thing, SecureSumMessage | ClientState | KnownPeer)
        ]
    assert here.server.result is not None and len(secrets.bytes) > 100
    assert len(caplog.records) > 60
    secrets.check(caplog.text + "\n".join(shown))


def test_nothing_secret_is_logged_when_nothing_is_opened(caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="hazemap.federated.protocols.secure_aggregation")
    here, secrets = session(5, threshold=3, survivors=4), Secrets()
    here.vectors[:] = 12_345
    while here.server.stage < Stage.UNMASK:
        here.stage()
        secrets.watch(here)
    with pytest.raises(NotOpened) as error:
        here.stage(without=[0, 1, 2])
    secrets.check(caplog.text + str(error.value))


def test_this_test_would_see_a_secret():
    here, secrets = session(4), Secrets()
    here.until(Stage.ASSENT)
    secrets.watch(here)
    share = next(iter(here.clients[0]._memory.dealt().values()))[1]
    for text in (share.hex(), repr(share), f"the vector is {here.vectors[0].tolist()}"):
        with pytest.raises(AssertionError):
            secrets.check(text)
