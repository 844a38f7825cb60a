"""An answer is read no further than it can be long."""

import asyncio
import gzip
import tracemalloc

import httpx
import pytest

from hazemap.errors import Refused
from hazemap.federated.service.operator_line import WORDS, asked, asked_async

PART = bytes(1 << 14)


class WithoutEnd(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Parts of an answer, counted as they are taken; far more than anybody should take."""

    def __init__(self, parts=1 << 14):
        self.taken, self.parts = 0, parts

    def __iter__(self):
        while self.taken < self.parts:
            self.taken += 1
            yield PART

    async def __aiter__(self):
        for part in iter(self):
            yield part


def over(stream, most, headers=None, status=200):
    """What both clients make of an answer."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, headers=headers, stream=stream))

    async def patient():
        async with httpx.AsyncClient(transport=transport) as http:
            return await asked_async(http, "GET", "https://one.example/", most)

    with httpx.Client(transport=transport) as http:
        yield lambda: asked(http, "GET", "https://one.example/", most)
    yield lambda: asyncio.run(patient())


@pytest.mark.parametrize("status", [200, 404, 500])
def test_an_answer_without_end_is_refused_and_not_kept(status):
    stream = WithoutEnd()
    tracemalloc.start()
    for ask in over(stream, WORDS, status=status):
        with pytest.raises(Refused, match="more than the 65,536 bytes"):
            ask()
        assert stream.taken * len(PART) <= WORDS + len(PART)
        stream.taken = 0
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_an_answer_of_just_the_allowed_length_is_read_whole():
    stream = WithoutEnd(parts=4)
    for ask in over(stream, 4 * len(PART), {"Location": "/here", "Content-Type": "text/plain"}, 201):
        found = ask()
        assert (found.status_code, len(found.content), found.headers["location"]) == (201, 4 * len(PART), "/here")
        assert found.headers["content-type"] == "text/plain"
        stream.taken = 0


def test_a_short_answer_that_would_become_long_is_not_unpacked():
    bomb = gzip.compress(bytes(50 << 20))
    for ask in over(httpx.ByteStream(bomb), WORDS, {"Content-Encoding": "gzip"}):
        with pytest.raises(Refused, match="compressed"):
            ask()


def test_answers_are_asked_for_as_they_are():
    seen = []

    def answered(request):
        seen.append(request.headers["accept-encoding"])
        return httpx.Response(200, content=request.headers["authorization"].encode())

    with httpx.Client(transport=httpx.MockTransport(answered)) as http:
        found = asked(http, "POST", "https://one.example/", headers={"Authorization": "Bearer x"}, content=b"body")
    assert found.text == "Bearer x" and seen == ["identity"]
