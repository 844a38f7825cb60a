"""The test vectors of the protocol: they are what the code says, and a client written from the pages says the same."""

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.federated.protocols.secure_aggregation import from_the_page as page
from tests.federated.protocols.secure_aggregation.vectors import FOLDER, everything, text

from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation.messages import MESSAGES, Invitation, decode
from hazemap.federated.protocols.secure_aggregation.modular_packing import unpack
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import join, join_with_errors

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "protocol.md"
STRUCTURES = PAGE.with_name("protocol-messages.md")
SESSIONS = ["session-semi-honest", "session-malicious"]


def vector(name: str):
    return json.loads((FOLDER / f"{name}.json").read_text())


def unhex(data: str) -> bytes:
    return bytes.fromhex(data)


def test_the_files_are_what_the_script_writes_and_what_the_page_names():
    now = everything()
    assert {path.stem for path in FOLDER.glob("*.json")} == set(now)
    for name, found in now.items():
        assert (FOLDER / f"{name}.json").read_text() == text(found), (
            f"{name}: run python tests/federated/protocols/secure_aggregation/vectors.py"
        )
    listed = PAGE.read_text().partition("## Test vectors")[2]
    assert set(re.findall(r"`([\w-]+)\.json`", listed)) == set(now)


def test_every_message_has_a_vector_and_a_structure_on_the_page():
    kinds = {unhex(m[way])[1] for name in SESSIONS for m in vector(name)["messages"] for way in ("down", "up")}
    assert kinds == {message.kind for message in MESSAGES}
    for message in MESSAGES:
        way = "down" if message.kind % 2 else "up"
        assert re.search(
            rf"/\* type {message.kind}, {way}.*?\}} {message.__name__};|"
            rf"\}} {message.__name__}; +/\* type {message.kind}, {way}",
            STRUCTURES.read_text(),
            re.DOTALL,
        )


def page_client(secrets) -> page.PageClient:
    return page.PageClient(
        Ed25519PrivateKey.from_private_bytes(unhex(secrets["identity_private"])),
        X25519PrivateKey.from_private_bytes(unhex(secrets["sealing_private"])),
        X25519PrivateKey.from_private_bytes(unhex(secrets["masking_private"])),
        unhex(secrets["self_mask_seed"]),
        {name: [int(c, 16) for c in row] for name, row in secrets["coefficients"].items()},
        secrets["contribution"],
        secrets["noise"],
    )


@pytest.mark.parametrize("name", SESSIONS)
def test_a_client_written_from_the_page_gives_every_answer_byte_by_byte(name):
    session = vector(name)
    clients = [page_client(secrets) for secrets in session["clients"]]
    for message in session["messages"]:
        client, up = clients[message["client"]], unhex(message["up"])
        if message["stage"] == "PICKS":
            client.picks = set(decode(up).picks)
        assert client.answer(unhex(message["down"])) == up, f"{message['stage']} of client {message['client']}"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_client_written_from_the_page_refuses_what_was_said_to_another(name):
    """The twin: the page's checks are there. Every message to one client is shown to its neighbour instead."""
    session = vector(name)
    downs = {(m["stage"], m["client"]): unhex(m["down"]) for m in session["messages"]}
    client = page_client(session["clients"][0])
    for message in session["messages"]:
        if message["client"] != 0:
            continue
        if message["stage"] == "PICKS":
            client.picks = set(decode(unhex(message["up"])).picks)
        wrong = downs[message["stage"], 1]
        if wrong != unhex(message["down"]):
            with pytest.raises(page.WrongError):
                page_client(session["clients"][0]).answer(wrong) if message["stage"] == "KEYS" else client.answer(wrong)
        client.answer(unhex(message["down"]))


@pytest.mark.parametrize("name", SESSIONS)
def test_the_sum_of_a_session_is_that_of_the_survivors(name):
    session = vector(name)
    half, there = 1 << session["terms"]["bits"] - 1, [0, 1, 2, 3, 5]
    assert session["gone_after_shares"] not in there
    rows = [np.add(session["clients"][i]["contribution"], session["clients"][i]["noise"]) for i in there]
    assert session["sums"] == ((np.sum(rows, axis=0) + half) % (2 * half) - half).tolist()


def test_primitives_are_those_of_the_page():
    found = vector("primitives")
    session, agreement, letter = unhex(found["session"]), found["agreement"], found["letter"]
    private = X25519PrivateKey.from_private_bytes(unhex(agreement["private"]))
    theirs = unhex(agreement["their_public"])
    mask = b"mask" + sha256(unhex(found["statements"]["sharers"])).digest()
    for purpose, length, name in ((b"letter", 32, "letter_key"), (mask, 16, "mask_key")):
        assert page.agree(session, private, theirs, purpose, length).hex() == agreement[name]
    other = page.agree(session, private, theirs, b"other", 40)
    assert other.hex() == agreement["other_purpose_40_bytes"]
    own = found["self_mask"]
    assert page.derive(session, unhex(own["seed"]), b"self", 16).hex() == own["key"]
    cipher, address = page.letter_cipher(unhex(agreement["letter_key"]), session, letter["sender"], letter["receiver"])
    assert address.hex() == letter["address"]
    plain = unhex(letter["plain"])
    nonce = page.letter_nonce(unhex(agreement["letter_key"]), address, plain)
    assert (nonce + cipher.encrypt(nonce, plain, address)).hex() == letter["sealed"]
    for masked in found["masks"]:
        words = page.mask(unhex(masked["key"]), 20_000, 16 if masked["words"] == "uint16" else 32)
        assert words[:8] == masked["first"] and words[19_990:] == masked["19990"]


def test_coins_and_what_a_first_message_shows_are_those_of_the_page():
    found = vector("coins")
    for case in found["draws"]:
        drawn = page.coins(*map(unhex, (case["key"], case["session"])), case["purpose"], *map(unhex, case["bound"]))
        for each in case["draws"]:
            length = len(unhex(each))
            assert drawn.take(-(-length // 8) * 8)[:length].hex() == each
    for case in found["first_messages"]:
        invitation = Invitation.decode(unhex(case["invitation"]))
        terms, position = invitation.terms, page.u32(invitation.position)
        said = sha256(page.packed([each % (1 << terms.bits) for each in case["contribution"]], terms.bits)).digest()
        drawn = page.coins(unhex(case["key"]), terms.session, "keys", position, said)
        keys = [X25519PrivateKey.from_private_bytes(drawn.take(32)) for _ in range(2)]
        shown = b"".join(key.public_key().public_bytes_raw() for key in keys)
        shown += sha256(b"hazemap 1 seed" + terms.session + position + drawn.take(32)).digest()
        assert unhex(case["reply"])[34:-64] == shown
    assert len({case["reply"] for case in found["first_messages"]}) == 3


def test_shares_are_those_of_the_page_and_join_also_with_liars():
    found = vector("sharing")
    coefficients = [int(c, 16) for c in found["coefficients"]]
    shares = {int(x): unhex(share) for x, share in found["shares"].items()}
    secret = unhex(found["secret"])
    assert shares == {x: page.share(secret, coefficients, x) for x in shares}
    three = dict(list(shares.items())[2:5])
    assert page.joined(three) == join(three, found["threshold"]) == secret
    spoilt = {int(x): unhex(share) for x, share in found["with_liars"]["shares"].items()}
    assert join_with_errors(spoilt, 3) == (secret, tuple(found["with_liars"]["liars"]))
    assert not any(page.is_share(unhex(data)) for data in found["not_shares"])
    assert int(found["prime"], 16) == page.PRIME


def test_packed_vectors_rosters_and_rings_are_those_of_the_page():
    for found in vector("packing"):
        assert page.packed(found["words"], found["bits"]).hex() == found["packed"]
        for data in found["refused"]:
            with pytest.raises(CodecError):
                unpack(unhex(data), len(found["words"]), found["bits"])
    for found in vector("rosters"):
        people = found["identities"]
        for position, path in enumerate(found["proofs"]):
            steps = [unhex(step) for step in path]
            assert page.root_by(steps, unhex(people[position]), position, len(people)).hex() == found["root"]
    found = vector("graphs")
    members = set(found["members"])
    for ring in found["rings"]:
        rows = [sorted(page.ring(unhex(found["seed"]), members, ring["degree"], p)) for p in found["members"]]
        assert rows == ring["neighbours"]


@pytest.mark.parametrize("wrong", vector("refused") if FOLDER.exists() else [], ids=lambda wrong: wrong["why"])
def test_what_the_page_refuses_is_refused(wrong):
    with pytest.raises(CodecError):
        decode(unhex(wrong["bytes"]))


def test_an_enrolment_is_signed_as_the_page_says():
    found = vector("enrolment")
    at, token = (len(found[name]).to_bytes(4, "big") + found[name].encode() for name in ("origin", "token"))
    nonce, server, device = (
        bytes.fromhex(text) for text in (found["challenge"], found["server"]["public"], found["device"]["public"])
    )
    asked = b"hazemap challenge 2" + at + device + nonce
    answer = b"hazemap enrol 2" + at + server + nonce + device + token
    for who, name, statement in (("server", "challenge", asked), ("device", "enrolment", answer)):
        assert found[f"{name}_statement"] == statement.hex()
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(found[who]["private"]))
        assert found[f"{name}_signature"] == key.sign(statement).hex()
