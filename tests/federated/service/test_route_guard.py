"""What is done before a request is understood, by each server in the same way."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.route_guard import TokenGuesses, TooLong, TooOften, Unauthorized, authorize, bearer, body


def request(*headers, client=("192.0.2.1", 1)):
    return {"type": "http", "headers": list(headers), "client": client}


def read(scope, parts, most):
    """A body that comes in these parts, and how many of them were read."""
    left = list(parts)

    async def receive():
        return left.pop(0)

    try:
        return asyncio.run(body(scope, receive, most)), len(parts) - len(left)
    except TooLong:
        return None, len(parts) - len(left)


def part(content, more):
    return {"type": "http.request", "body": content, "more_body": more}


@pytest.mark.parametrize(
    ("said", "parts", "found", "taken"),
    [
        (b"11", [part(b"0" * 11, False)], None, 0),
        (b"9" * 18, [part(b"", False)], None, 0),
        (b"10", [part(b"0" * 10, False)], b"0" * 10, 1),
        (b"1", [part(b"0" * 6, True), part(b"0" * 6, True), part(b"", False)], None, 2),
        (b"\xb2", [part(b"1", False)], b"1", 1),
        (b"9" * 30, [part(b"1", False)], b"1", 1),
        (b"", [part(b"", False)], b"", 1),
    ],
)
def test_a_body_is_refused_by_its_head_and_read_no_further_than_it_may_be_long(said, parts, found, taken):
    assert read(request((b"content-length", said)), parts, 10) == (found, taken)


def test_whoever_goes_while_they_send_has_sent_nothing():
    with pytest.raises(ClientDisconnect):
        read(request(), [part(b"1", True), {"type": "http.disconnect"}], 10)


def test_a_token_opens_what_it_is_for_and_an_empty_one_opens_nothing():
    shown = request((b"authorization", b"bearer  the token "))
    assert bearer(shown) == "the token"
    authorize(shown, kept("the token"))
    assert shown["hazemap.known"]
    for wrong in (request((b"authorization", b"Basic the token")), request((b"authorization", b"Bearer x")), request()):
        for accepted in (kept("the token"), b""):
            with pytest.raises(Unauthorized):
                authorize(wrong, accepted)
        assert "hazemap.known" not in wrong


def test_guesses_of_one_address_are_few_and_of_others_as_many():
    guesses = TokenGuesses(3)
    for _ in range(3):
        guesses.count(request())
    with pytest.raises(TooOften, match="later"):
        guesses.count(request())
    guesses.count(request(client=("192.0.2.2", 1)))
    guesses.count(request(client=None))
