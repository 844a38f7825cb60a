"""A shuffler over HTTP: who may do what, what is said of a request that is refused, and an analyser that collects."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from tests.federated.shuffler.batches import KEY, NOW, TERMS, Machine, messages_of, other, request_of

from hazemap.errors import InputError, NotOpened, Refused, Unreachable
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.databases import Sqlite
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.shuffler import shuffler_process
from hazemap.federated.shuffler.analyser_client import AnalyserClient
from hazemap.federated.shuffler.shuffler_routes import ShufflerMetrics, ShufflerRoutes

TOKEN = "the analyser's token"
PLACE = f"/v1/batches/{TERMS.digest.hex()}"


class Served:
    """A shuffler's application, its analyser, and people's line to it; `now` is its clock."""

    def __init__(self, folder, **limits):
        self.machine, self.now = Machine(database=Sqlite(Path(folder) / "shuffler.sqlite")).start(), NOW
        self.tokens = {"analyser": TOKEN}
        routes = ShufflerRoutes(
            self.machine.service,
            lambda: self.tokens,
            HttpLimits.here(**limits),
            lambda: self.now,
            operator=kept("the operator's token"),
        )
        line = httpx.ASGITransport(routes.application())
        self.people = httpx.AsyncClient(transport=line, base_url="https://shuffler.example")
        self.analyser = AnalyserClient(self.people, TOKEN)

    async def send(self, person, content=None, place=PLACE):
        return await self.people.post(f"{place}/messages", content=content or request_of(person))

    async def asked(self, method, place=PLACE, token=TOKEN, **options):
        return await self.people.request(method, place, headers={"Authorization": f"Bearer {token}"}, **options)


def run(work, **limits):
    async def served():
        with TemporaryDirectory() as folder:
            server = Served(folder, **limits)
            try:
                return await work(server)
            finally:
                server.machine.store.close()

    return asyncio.run(served())


def test_people_send_and_an_analyser_collects_what_they_sent_and_has_it_forgotten():
    async def work(server):
        assert await server.analyser.key() == KEY.public
        for _ in range(2):
            await server.analyser.announce(TERMS)
        for person in ("ann", "ben", "ann"):
            assert (await server.send(person)).status_code == 204
        with pytest.raises(NotOpened, match="nothing below 3"):
            await server.analyser.collected(TERMS)
        assert (await server.analyser.state(TERMS.digest))[:2] == ("open", 2)
        assert (await server.send("cem")).status_code == 204
        found = [await server.analyser.collected(TERMS) for _ in range(2)]
        assert found[0] == found[1]
        assert Counter(found[0]) == Counter(each for name in ("ann", "ben", "cem") for each in messages_of(name))
        for _ in range(2):
            await server.analyser.forget(TERMS.digest)
        with pytest.raises(Refused, match="forgotten"):
            await server.analyser.collected(TERMS)
        assert (await server.send("dora")).status_code == 410

    run(work)


def test_many_people_at_once_are_all_in_it_and_one_who_sends_twice_counts_once():
    async def work(server):
        await server.analyser.announce(TERMS)
        replies = await asyncio.gather(*(server.send(name) for name in ("ann", "ben", "cem", "dora", "ann", "ann")))
        assert {reply.status_code for reply in replies} == {204}
        assert (await server.analyser.state(TERMS.digest)).people == 4

    run(work)


@pytest.mark.parametrize(
    ("method", "place", "options", "status"),
    [
        ("PUT", PLACE, {"content": b"x"}, 422),
        ("PUT", PLACE, {"content": other(nonce=b"z" * 16).to_bytes()}, 422),
        ("PUT", PLACE, {"content": bytes(2_000)}, 413),
        ("PUT", "/v1/batches/zz", {"content": TERMS.to_bytes()}, 404),
        ("GET", "/v1/batches/" + "0" * 64, {}, 404),
        ("GET", f"{PLACE}/messages?piece=0", {}, 410),
        ("GET", f"{PLACE}/messages?piece=-1", {}, 422),
        ("GET", f"{PLACE}/messages", {}, 422),
        ("POST", f"{PLACE}/permutation", {}, 409),
        ("POST", f"{PLACE}/messages", {"content": bytes(10_000)}, 413),
        ("POST", f"{PLACE}/messages", {"content": bytes(100)}, 403),
        ("POST", f"{PLACE}/messages", {"content": request_of("ann")[:-1] + b"!"}, 403),
        ("POST", "/v1/batches/" + "0" * 64 + "/messages", {"content": b"x"}, 404),
        ("PATCH", PLACE, {}, 405),
    ],
)
def test_requests_that_cannot_be_are_refused_with_their_reason(method, place, options, status):
    async def work(server):
        await server.analyser.announce(TERMS)
        reply = await server.asked(method, place, **options)
        assert reply.status_code == status
        assert status == 405 or len(reply.json()["error"]) > 10
        assert (await server.analyser.state(TERMS.digest)).people == 0

    run(work)


def test_only_the_analyser_announces_permutes_fetches_and_forgets_and_guessing_is_slow():
    async def work(server):
        await server.analyser.announce(TERMS)
        for person in ("ann", "ben", "cem"):
            await server.send(person)
        private = [
            ("PUT", PLACE),
            ("GET", PLACE),
            ("DELETE", PLACE),
            ("POST", f"{PLACE}/permutation"),
            ("GET", f"{PLACE}/messages?piece=0"),
        ]
        for method, place in private:
            assert (await server.asked(method, place, token="another")).status_code == 401
        reply = await server.asked("GET", PLACE, token="another")
        assert reply.status_code == 429 and int(reply.headers["retry-after"]) > 0
        assert (await server.analyser.state(TERMS.digest)).state == "open", "who knows the token is not kept waiting"

    run(work, guesses=5)


def test_each_analyser_has_batches_of_its_own_and_a_token_that_ends(caplog):
    caplog.set_level("INFO")

    async def work(server):
        server.tokens = {"anna": TOKEN, "ben": "another analyser's token"}
        ben, state = AnalyserClient(server.people, "another analyser's token"), server.analyser.state
        await server.analyser.announce(TERMS)
        for ask in (ben.state, ben.forget, lambda _: ben.announce(TERMS), lambda _: ben.collected(TERMS)):
            with pytest.raises(Refused, match="knows no such batch"):
                await ask(TERMS.digest)
        own = other(nonce=b"q" * 16)
        await ben.announce(own)
        assert (await state(TERMS.digest)).state == (await ben.state(own.digest)).state == "open"
        for person in ("ann", "ben", "cem"):
            await server.send(person)
        await server.analyser.collected(TERMS)
        del server.tokens["anna"]  # its file is removed
        with pytest.raises(Refused, match="show its token"):
            await state(TERMS.digest)
        assert (await ben.state(own.digest)).state == "open"
        server.tokens = {}
        with pytest.raises(Refused, match="show its token"):
            await ben.state(own.digest)

    run(work)
    assert "anna announces a batch of 3 to" in caplog.text and "permuted for anna" in caplog.text


def test_an_operator_reads_numbers_of_batches_and_nobody_else_does():
    async def work(server):
        await server.analyser.announce(TERMS)
        await server.send("ann")
        for token in ("another", TOKEN, ""):
            assert (await server.asked("GET", "/metrics", token)).status_code == 401
        reply = await server.asked("GET", "/metrics", "the operator's token")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = reply.text.splitlines()
        for line in (
            'hazemap_batches{analyser="analyser",state="open"} 1',
            'hazemap_batches{analyser="analyser",state="forgotten"} 0',
            'hazemap_people_waiting{analyser="analyser"} 1',
            f'hazemap_promised_bytes{{analyser="analyser"}} {TERMS.most_bytes}',
            'hazemap_requests_total{resource="batches",who="analyser",status="201"} 1',
            'hazemap_requests_total{resource="messages",status="204"} 1',
            'hazemap_requests_total{resource="metrics",status="401"} 3',
            "hazemap_batches_expired_total 0",
        ):
            assert line in lines, line
        assert all(
            re.fullmatch(r'hazemap_\w+({\w+="[^"]*"(,\w+="[^"]*")*})? [-+.e\d]+|# (HELP|TYPE) .*', each)
            for each in lines
        )

    run(work)


def test_where_there_is_no_operator_nobody_reads_numbers():
    async def work(server):
        line = httpx.ASGITransport(ShufflerRoutes(server.machine.service, dict).application())
        async with httpx.AsyncClient(transport=line, base_url="https://shuffler.example") as people:
            for token in ("", "x"):
                reply = await people.get("/metrics", headers={"Authorization": f"Bearer {token}"})
                assert reply.status_code == 401

    run(work)


def test_a_shuffler_begins_by_a_clock_that_is_weeks_ahead_and_forgets_nothing(tmp_path):
    machine, metrics = Machine().start(), ShufflerMetrics()
    machine.service.announce(TERMS, NOW)
    for now, forgotten in ((NOW, 0), (NOW + 90 * 86_400, 0), (NOW + 91 * 86_400 - 1, 0), (NOW + 91 * 86_400, 1)):
        shuffler_process._forget(machine.service, metrics, now)
        assert metrics.expired == forgotten
    machine.store.close()


def test_limits_of_the_operator_reach_the_analyser_in_words():
    async def work(server):
        with pytest.raises(InputError, match="nothing below the messages of 2 people"):
            await server.analyser.announce(other(minimum=1))

    run(work)


def lying(change):
    """An analyser whose shuffler answers something else than it should."""

    async def work(server):
        await server.analyser.announce(TERMS)
        for person in ("ann", "ben", "cem"):
            await server.send(person)
        true = server.people._transport

        class Lying(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request):
                reply = await true.handle_async_request(request)
                content = await reply.aread()
                return httpx.Response(reply.status_code, content=change(request, content))

        http = httpx.AsyncClient(transport=Lying(), base_url="https://shuffler.example")
        return await AnalyserClient(http, TOKEN).collected(TERMS)

    return run(work)


def of_messages(change):
    return lambda request, content: change(content) if request.url.path.endswith("messages") else content


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (of_messages(lambda content: content[50:]), Refused, "something else than it said"),
        (of_messages(lambda content: content[:1]), Refused, "not of whole messages"),
        (of_messages(lambda content: content[50:] + content[:50]), Refused, "something else than it said"),
        (of_messages(lambda content: content * 3), Refused, "more messages than the people"),
        (lambda _, content: content.replace(b'"people"', b'"x"'), Unreachable, "does not say how"),
        (lambda _, content: content.replace(b'"people":3', b'"people":"3"'), Unreachable, "does not say how"),
        (lambda *_: b"[]", Unreachable, "does not say how"),
        (lambda *_: b"[" * 60_000, Unreachable, "does not say how"),
        (lambda *_: b" " * 70_000, Refused, "more than the 65,536 bytes"),
        (of_messages(lambda _: b""), Refused, "not of whole messages"),
    ],
    ids=[
        "fewer",
        "one byte",
        "reordered on the way",
        "more",
        "no number",
        "a text",
        "a list",
        "deep",
        "without end",
        "nothing",
    ],
)
def test_what_a_shuffler_hands_on_is_what_it_said(change, error, words):
    with pytest.raises(error, match=words):
        lying(change)
