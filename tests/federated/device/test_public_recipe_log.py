"""A device answers a recipe only if the server's public log says so, and goes on from what it said before."""

import asyncio
import json
import random
from dataclasses import replace

import pytest
from tests.federated.device.recipe_room import OPEN, recipe_task, typing
from tests.federated.device.room import NOW, Room, entry_of
from tests.federated.device.test_agent import SERVER, Scripted, answer, made, stepped, work

from hazemap.errors import CodecError, Unreachable
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.http_client import HttpReply
from hazemap.federated.device.recipes.public_recipe_log import MOST_ENTRIES, PublicRecipeLog, SeenRecipeLog
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.chained_log import PAGE, LogHead
from hazemap.federated.recipes.recipe import LOG_FIELDS, RECIPE_LOG_FORMAT

TWENTY = [["so"]] * 20
ASKED = recipe_task()


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        typing(store, TWENTY)
        yield store


def filler(head, **changes):
    """An entry about a policy: nothing that devices look for."""
    values = (head.entries + 1, "2026-03-01T00:00:00Z", "policy", "keyboard", head.entries, "00", "", 0, 0, "")
    text = RECIPE_LOG_FORMAT.text(dict(zip(LOG_FIELDS, (*values, head.digest), strict=True)) | changes)
    return f'{text[:-1]},"digest":"{RECIPE_LOG_FORMAT.digest(text).hex()}"}}'


def chained(*entries):
    """Lines of a log: each is made after the one before by one of these."""
    lines, head = [], LogHead()
    for each in entries:
        lines.append(each(head))
        head, _ = RECIPE_LOG_FORMAT.entry(lines[-1], head)
    return lines


def about(task, **changes):
    return lambda head: entry_of(task, head, **changes)


def read(lines):
    log = PublicRecipeLog()
    log.take(lines)
    return log


class Log:
    """A transport to a server that shows these lines, a page at a time."""

    def __init__(self, lines, page=PAGE):
        self.lines, self.page, self.asked = list(lines), page, []

    async def send(self, method, path, ticket="", content=b"", kind=""):
        assert (method, ticket, content) == ("GET", "", b"")
        after = int(path.removeprefix("/v1/recipes?after="))
        self.asked.append(after)
        return HttpReply(200, None, "".join(f"{each}\n" for each in self.lines[after : after + self.page]).encode())


def told(store, log, task=ASKED, nonce=bytes(32), seen=None):
    """What the first device says to an invitation when it has read this log."""
    room = Room(store, task, policy=OPEN, nonce=nonce)
    room.public_log = log
    asked = room.answering(0)
    step = asked.answer(room.work(0), NOW, seen)
    assert store.commit([step.writes]) == [None]
    return step.refusal


def head_on_disk(store):
    return SeenRecipeLog(store, enrolment.devices(store)[0], "").seen()


def test_a_recipe_that_is_not_in_the_log_is_refused_logged_and_free(store):
    first = enrolment.devices(store)[0]
    assert "not in the server's public log" in told(store, read(chained(filler)))
    [line] = ActivityLog(store, first).entries()
    assert "so nobody else can see what this device is asked" in line.verdict and line.recipe == ASKED.recipe.digest
    assert RecipeAccount(store, first).charges() == []
    assert head_on_disk(store).entries == 1, "what was shown is remembered, whatever became of the recipe"
    assert told(store, read(chained(filler, about(ASKED))), nonce=b"2" * 32) is None
    assert head_on_disk(store).entries == 2


OTHERWISE = {
    "another number of people": {"people": 21},
    "another round": {"round": 2},
    "another study": {"study": "autumn"},
    "another recipe": {"sha256": "00" * 32},
    "another version": {"version": 2},
    "another name": {"name": "nothing of interest"},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_log_that_says_something_else_of_the_round_is_refused(store, what):
    assert "something else of this round" in told(store, read(chained(about(ASKED, **OTHERWISE[what]))))


def test_a_recipe_of_a_study_that_was_stopped_is_refused(store):
    def stop(head):
        return filler(head, kind="stop", study="study")

    assert "was stopped" in told(store, read(chained(about(ASKED), stop)))
    other = read(chained(about(ASKED), lambda head: filler(head, kind="stop", study="other")))
    assert other.refusal(ASKED, LogHead()) is None


def test_a_log_that_was_written_anew_or_cut_since_is_refused_after_a_restart_too(store):
    """The head is on the disk: a process that begins anew reads the log from its beginning, and compares."""
    assert told(store, read(chained(filler, filler, about(ASKED)))) is None
    before = head_on_disk(store)
    second = recipe_task(number=2)
    for number, lines in enumerate(
        (
            chained(filler, about(ASKED), about(second)),
            chained(filler, lambda head: filler(head, version=9), about(ASKED), about(second)),
            chained(about(second)),
            [],
        )
    ):
        reason = told(store, read(lines), second, nonce=bytes([number + 2]) * 32)
        assert "was cut or written anew: entry 3" in reason
        assert head_on_disk(store) == before
    assert told(store, read(chained(filler, filler, about(ASKED), about(second))), second, nonce=b"9" * 32) is None


def test_another_process_that_has_seen_more_is_no_reason_to_accuse_a_server(store):
    lines = chained(about(ASKED), filler, about(recipe_task(number=2)))
    ours, theirs = read(lines[:1]), read(lines)
    assert told(store, ours, seen=LogHead()) is None
    assert told(store, theirs, recipe_task(number=2), nonce=b"2" * 32) is None
    transport = Log(lines)
    asyncio.run(ours.read(transport, ASKED, head_on_disk(store)))
    assert transport.asked == [0] and ours.head == theirs.head
    asyncio.run(ours.read(transport, ASKED, head_on_disk(store)))
    assert transport.asked == [0], "a task that is known to be in the log is not looked for again"
    late = Room(store, replace(recipe_task(number=3)), policy=OPEN, nonce=b"3" * 32)
    late.public_log = read(lines[:1])
    step = late.answering(0).answer(late.work(0), NOW, seen=LogHead())
    [failed] = store.commit([step.writes])
    assert "another process" in str(failed), "who has read less than is on the disk by now begins again"


def test_a_log_is_read_page_by_page_and_what_was_read_is_not_asked_for_again():
    lines = chained(*[filler] * (2 * PAGE + 5), about(ASKED))
    transport, log = Log(lines), PublicRecipeLog()
    asyncio.run(log.read(transport, ASKED, LogHead()))
    assert (log.head.entries, log.trouble) == (len(lines), None)
    assert transport.asked == [0, PAGE - 1, 2 * PAGE - 2]
    assert log.refusal(ASKED, RECIPE_LOG_FORMAT.checked(lines[:1_500])) is None


def altered(line, **changes):
    fields = json.loads(line) | changes
    del fields["digest"]
    text = RECIPE_LOG_FORMAT.text(fields)
    return f'{text[:-1]},"digest":"{RECIPE_LOG_FORMAT.digest(text).hex()}"}}'


HONEST = chained(filler, about(ASKED), filler)
WRONG = {
    "an entry that was changed": [HONEST[0], HONEST[1].replace('"people":20', '"people":2'), HONEST[2]],
    "an entry that was changed, with its own hash": [HONEST[0], altered(HONEST[1], people=2), HONEST[2]],
    "an entry that is gone": [HONEST[0], HONEST[2]],
    "an entry that came twice": [HONEST[0], HONEST[0], *HONEST[1:]],
    "numbers that are floats": [altered(HONEST[0], seq=1.0)],
    "numbers that are no numbers": [altered(HONEST[0], seq=True)],
    "a line that is no JSON": ["["],
    "a line nested deep": ["[" * 4_000],
    "a line of a megabyte": ["x" * 1_000_000],
    "fields in another order": [RECIPE_LOG_FORMAT.text(dict(reversed(json.loads(HONEST[0]).items())))],
    "letters that are no ASCII": ["ä"],
    "more entries than were asked for": chained(*[filler] * (PAGE + 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_log_that_is_broken_is_refused_in_words_until_it_is_whole_again(store, what):
    log = PublicRecipeLog()
    asyncio.run(log.read(Log(WRONG[what], page=2 * PAGE), ASKED, LogHead()))
    assert "does not go on from the one it showed before" in told(store, log)
    assert head_on_disk(store).entries == 0
    whole = Log([json.dumps(json.loads(each), separators=(",", ":")) for each in HONEST])
    if log.head.entries <= 1 and what != "more entries than were asked for":
        asyncio.run(log.read(whole, ASKED, LogHead()))
        assert told(store, log, nonce=b"2" * 32) is None


def test_within_a_process_too_a_log_goes_on_from_where_it_was():
    log = read(HONEST[:1])
    for shown, words in (([], "entry 1 is gone"), (chained(lambda head: filler(head, version=7)), "entry 1")):
        asyncio.run(log.read(Log(shown), ASKED, LogHead()))
        assert words in log.trouble and log.head.entries == 1
    asyncio.run(log.read(Log(HONEST), ASKED, LogHead()))
    assert log.trouble is None and log.head.entries == 3


def test_a_server_that_shows_entries_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr("hazemap.federated.device.recipes.public_recipe_log.MOST_ENTRIES", 30)
    assert MOST_ENTRIES > 10_000
    log, lines = PublicRecipeLog(), chained(*[filler] * 40)
    asyncio.run(log.read(Log(lines), ASKED, LogHead()))
    assert "more than the 30 entries" in log.trouble

    class Same(Log):
        async def send(self, *_, **__):
            return await super().send("GET", "/v1/recipes?after=0")

    log = PublicRecipeLog()
    same = Same(lines[:10], page=10)
    monkeypatch.setattr("hazemap.federated.device.recipes.public_recipe_log.PAGE", 10)
    asyncio.run(log.read(same, ASKED, LogHead()))
    assert log.trouble and len(same.asked) == 2, "a page that does not go on ends the reading"


def test_mutated_lines_are_taken_or_refused_and_nothing_else_happens():
    rng = random.Random(1)
    for _ in range(2_000):
        line = list(rng.choice(HONEST))
        for _ in range(rng.choice((1, 1, 2, 5))):
            line[rng.randrange(len(line))] = rng.choice('0"{}[],:ex\\u.-')
        log = PublicRecipeLog()
        try:
            log.take(["".join(line)])
        except CodecError:
            assert log.head == LogHead()


def test_an_agent_reads_the_log_before_it_answers_and_says_nothing_while_there_is_none(store):
    room = Room(store, ASKED, policy=OPEN)
    log = "".join(f"{each}\n" for each in HONEST).encode()
    for silence in (Unreachable("gone"), answer(404), answer(500)):
        agent = made(store, Scripted(work(room), silence), OPEN)
        stepped(agent)
        assert [path for _, path, *_ in agent.http_transport.sent] == ["/v1/tasks", "/v1/recipes?after=0"]
        assert agent.failed == 1 and ActivityLog(store, agent.device).entries() == []
    transport = Scripted(work(room), answer(200, content=log), answer(200), work(room), answer(200))
    agent = made(store, transport, OPEN)
    stepped(agent, 2)
    paths = [(method, path) for method, path, *_ in transport.sent]
    session = f"/v1/tasks/{room.terms.session.hex()}"
    assert paths[1:3] == [("GET", "/v1/recipes?after=0"), ("POST", session)]
    assert paths[3:] == [("GET", "/v1/tasks"), ("POST", session)], "the same message again needs no log"
    assert SeenRecipeLog(store, agent.device, SERVER).seen().entries == 3
    kept = SeenRecipeLog(store, agent.device, SERVER).forgotten()
    assert store.commit([kept]) == [None] and not SeenRecipeLog(store, agent.device, SERVER).seen().entries


def test_an_agent_posts_why_it_refuses_a_recipe_that_is_kept_from_the_log(store):
    room = Room(store, ASKED, policy=OPEN)
    transport = Scripted(work(room), answer(200, content=HONEST[0].encode()), answer(204))
    stepped(agent := made(store, transport, OPEN))
    assert "not in the server's public log" in json.loads(transport.sent[-1][3])["reason"] and agent.refusals == 1
