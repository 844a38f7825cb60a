"""What a device reads of its server, and a server of its devices: work, announcements, tickets, heads and logs.

Signatures are verified where a reader does so itself. Where that hides a reader, what is spoilt is signed anew.
"""

import json
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, partial
from hashlib import sha256
from math import inf
from types import SimpleNamespace
from typing import Any, Final, cast

from tests.federated.device.hostile_bytes import mutated, recipes, valid, with_other_values

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import HazemapError, Refused
from hazemap.federated.device.account.account_head import HEAD, HeadSeal
from hazemap.federated.device.enrolment import Enrolment, enrolled
from hazemap.federated.device.http_client import HttpReply, http_reply
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog
from hazemap.federated.device.reports.report_routes import ReportCredentials, ShufflerRoute
from hazemap.federated.device.reports.report_sender import read_announcement
from hazemap.federated.device.server_task import ParsedTaskCache, ServerTask
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.protocols.dap.report_credentials import ISSUED, keys_statement, report_key
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import CHALLENGE, Challenge
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.shuffle import submission as shuffle_credential
from hazemap.federated.protocols.shuffle.submission import read_submission, submitted
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import SignedPolicy, canonical_json, example
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
from hazemap.federated.server.device_endpoints import deposited, written
from hazemap.federated.server.device_enrolment import made_up, spelled
from hazemap.federated.server.networked_two_servers import issuing
from hazemap.federated.server.shard import SeatTask
from hazemap.federated.service.route_guard import bearer
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.shuffled import batch_terms
from hazemap.federated.trust.two_server_tasks import round_tasks
from hazemap.privacy.budget import PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.vdaf.hpke import HpkeKeyPair, Kem
from research.hostile_bytes.spoilt import Reader, in_words, must, text

ISSUER, DEVICE, OTHER = (Identity.from_bytes(bytes([number]) * 32) for number in (1, 2, 3))
SECRET, SESSION = bytes(range(32)), bytes(range(32, 64))
ONE, TWO, AT = "https://one.example/", "https://two.example/", "https://maps.example"
SEAL: Final = HeadSeal(SECRET, ISSUER.public)
MIX, ANALYSER = (HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, each * 32) for each in (b"m", b"a"))
RULES = Policy(shufflers=(f"{ONE}#{sha256(MIX.public).hexdigest()}",), upload=1 << 30)
SIGNED: Final = SignedPolicy.sign(example(), ISSUER).to_json()
UNTIL = datetime(2026, 12, 1, tzinfo=UTC)


def corpus() -> dict[str, Reader]:
    """By the name of a reader, bytes that it takes, and the reader."""
    kept = valid()
    signed = SIGNED.encode()
    return {
        "work": Reader(kept["work"], work, partial(mutated, kind="work")),
        "task": Reader(kept["task"], task, partial(mutated, kind="task")),
        "announcement": Reader(announcements := [*kept["announcement"], _of_a_recipe()], announcement, _announced),
        "announcement and its tasks": Reader(announcements, tasks_of, _announced),
        "policy": Reader([signed], in_words(policy), changed([signed])),
        "recipe": Reader([EXAMPLE.encode()], in_words(recipe)),
        "page of the recipe log": Reader(kept["log"], partial(page, 0), partial(mutated, kind="log")),
        "page that goes on": Reader([_rest(3)], partial(page, 3)),
        **_heads(),
        **_tickets(),
        **_credentials(),
        **_shuffled(),
    }


def changed(texts: Sequence[bytes]) -> Callable[[random.Random], bytes]:
    """One of these JSON texts with one or two of its values changed, written as they are."""

    def draw(rng: random.Random) -> bytes:
        values = json.loads(rng.choice(texts))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            values = with_other_values(rng, values)
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode(errors="surrogatepass")

    return draw


def ended(running: Coroutine[Any, Any, Any]) -> Any:
    """What becomes of a coroutine that waits for nobody."""
    try:
        running.send(None)
    except StopIteration as found:
        return found.value
    raise AssertionError("it waits")


@dataclass(frozen=True)
class Wire:
    """A server that answers this; what is asked of `first` has an answer of its own."""

    status: int
    content: bytes
    first: str = ""
    answer: bytes = b""

    async def send(self, _method: str, path: str, *_: object, **__: object) -> HttpReply:
        """One request."""
        return HttpReply(200, None, self.answer) if path == self.first else HttpReply(self.status, None, self.content)


def work(data: bytes) -> None:
    """What a server asks one device to do next; a number of another week ends with this one."""
    found = ServerTask.from_json(data)
    must(len(found.session) == 32 and len(found.head) in (0, HEAD) and found.ends(1.0) <= 1 + 7 * 86_400)


def task(data: bytes) -> None:
    """A round of a secure sum, which is written in one way."""
    found = ParsedTaskCache().find(text(data)).task
    must(codec.dumps(found).encode() == data and found.digest == sha256(data).digest())


def announcement(data: bytes) -> None:
    """A round whose report goes to other servers, which is written in one way."""
    read_announcement.cache_clear()
    must(codec.digest(read_announcement(text(data))) == sha256(data).hexdigest())


def tasks_of(data: bytes) -> None:
    """The tasks of both servers that follow from such a round: milliseconds, where it asks a recipe."""
    read_announcement.cache_clear()
    try:
        tasks = round_tasks(read_announcement(text(data)), ISSUER.public)
    except HazemapError as error:
        raise Refused(str(error)) from None
    must(len({each.id for each in tasks}) == len(tasks) > 0)


@cache
def _of_a_recipe() -> bytes:
    asked = replace(recipe_from_toml(EXAMPLE), carrier=Carrier.TWO_SERVERS)
    round_ = Task.asking(asked, "study", 1, Cohort(20_000, 10_000, mode=Mode.SEMI_HONEST))
    return codec.dumps(CarriedTask(round_, ByTwoServers(ONE, TWO, 18_000), "ab" * 32, 1_800_000_000)).encode()


def _announced(rng: random.Random) -> bytes:
    """A round of a map, or of a recipe that as many people are asked as are needed, or others, changed."""
    if rng.random() < 0.5:
        return mutated(rng, "announcement")
    values = json.loads(_of_a_recipe())
    asked = values["CarriedTask"]
    asked["carrier"]["ByTwoServers"]["minimum"] = people = rng.choice((1, 10_000, 18_000, 20_000, 1 << 24))
    if rng.random() < 0.5:
        asked["task"]["Task"]["cohort"]["Cohort"] |= {"people": people + 2, "shard": min(people + 2, 10_000)}
    return changed([json.dumps(values).encode()])(rng)


def policy(data: bytes) -> None:
    """A policy with a signature; it means the same however its digits are written."""
    found = SignedPolicy.from_json(data)
    must(SignedPolicy.from_json(found.to_json()) == found and len(canonical_json(found.policy)) > 0)
    try:
        found.verify(found.key)
    except Refused:
        return
    must(found.to_json() == SIGNED)


def recipe(data: bytes) -> None:
    """A recipe as its author writes it."""
    must(len(recipe_from_toml(text(data)).digest) == 64)


def page(known: int, data: bytes) -> None:
    """A page of the server's public log, by a device that knows some entries: it goes on from them, or is refused."""
    log, lines = PublicRecipeLog(), recipes()["log"][:known]
    log.take(lines)
    ended(log._page(Wire(200, data)))
    new = [line for line in data.decode().split("\n") if line]
    must(log.head == RECIPE_LOG_FORMAT.checked([*lines, *(new[1:] if known else new)]))
    must(log.rewritten(LogHead()) is None and log.rewritten(log.head) is None)


def _rest(known: int) -> bytes:
    return "\n".join(recipes()["log"][known - 1 :]).encode()


def _heads() -> dict[str, Reader]:
    """Heads of accounts: as a device opens them, as it deposits them, and as a server has kept and gives them back."""
    heads = {number: SEAL.sealed(number) for number in (0, 1, 7, (1 << 64) - 1)}

    def opened(data: bytes) -> None:
        number = SEAL.opened(data)
        must((number is None) == (data not in heads.values()))
        if number is None:
            raise Refused("it was not sealed here")
        must(heads[number] == data)

    def head_deposited(data: bytes) -> None:
        found = deposited({"query_string": data})
        must(found == b"" or data == b"head=" + found.hex().encode())
        if not found:
            raise Refused("it is not written as a head")

    def given_back(data: bytes) -> None:
        for message in (b"", b"a message"):
            content, _ = written(SeatTask(SESSION, 1, None, message, UNTIL), compressed=False, head=data)
            found = ServerTask.from_json(content)
            must((found.session, found.message, found.until) == (SESSION, message, UNTIL.timestamp()))
            must(found.head == (data if len(data) == HEAD else b""))
        opened(found.head)

    queries = [b"head=" + each.hex().encode() for each in heads.values()]
    stored = list(heads.values())
    return {
        "head, opened by a device": Reader(stored, opened),
        "head, deposited": Reader(queries, head_deposited),
        "head, kept and given back": Reader(stored, given_back),
    }


def _tickets() -> dict[str, Reader]:
    """What a server says when a device enrols, and what a device shows it later."""
    device = Enrolment(DEVICE.to_bytes(), SECRET)
    asked = Challenge.signed(ISSUER, AT, DEVICE.public, bytes(CHALLENGE))
    fields = {"server": asked.server, "challenge": asked.nonce, "signature": asked.signature}
    genuine = json.dumps({name: value.hex() for name, value in fields.items()}).encode()
    ticket = json.dumps({"device": "ann", "ticket": "0123456789abcdef"}).encode()
    refusal = json.dumps({"error": "this enrolment code was used before"}).encode()

    def challenged(data: bytes) -> None:
        found = ended(enrolled(device, Wire(201, ticket, "/v1/challenge", data), AT, "code"))
        must(found.pinned == ISSUER.public.hex())

    def given(data: bytes) -> None:
        found: Enrolment = ended(enrolled(device, Wire(201, data, "/v1/challenge", genuine), AT, "code"))
        must(Enrolment.from_bytes(found.to_bytes()) == found and 0 < len(found.ticket or "") <= len(data))
        shown = b"Bearer " + (found.ticket or "").encode("ascii")
        must(bearer({"headers": [(b"authorization", shown)]}) == found.ticket and (found.name or "").isprintable())

    def refused(data: bytes) -> None:
        try:
            ended(enrolled(device, Wire(403, data, "/v1/challenge", genuine), AT, "code"))
        except Refused as error:
            must(str(error).isprintable() and len(str(error)) < 400)
            return
        must(False)

    def waited(data: bytes) -> None:
        words = data.decode("latin-1")
        said = http_reply(200, lambda name: words if name in ("retry-after", "cache-control") else "", b"")
        must(said.wait is None or 0 <= said.wait < inf)
        must(said.fresh is None or 0 <= said.fresh < inf)

    def shown(data: bytes) -> None:
        found = bearer({"headers": [(b"authorization", data)]})
        if not found:
            raise Refused("no ticket")
        must(data.decode("latin-1").lower().startswith("bearer") and found in data.decode("latin-1"))

    def code(data: bytes) -> None:
        found = spelled(text(data))
        if found is None:
            raise Refused("no code")
        must(spelled(found) == found and len(found) == 23)

    return {
        "challenge, read by a device": Reader([genuine], in_words(challenged), changed([genuine])),
        "ticket, given": Reader([ticket], in_words(given), changed([ticket])),
        "refusal to enrol": Reader([refusal], refused, changed([refusal])),
        "times of an answer": Reader([b"30", b"1.5", b"max-age=60, public", b"no-store"], waited),
        "ticket, shown": Reader([b"Bearer 0123456789abcdef", b"bearer  x"], shown),
        "code of an enrolment": Reader([made_up().encode() for _ in range(4)], code),
    }


def _credentials() -> dict[str, Reader]:
    """Credentials of a round over two servers: as a device asks for them, and as it is given them."""
    tasks = round_tasks(read_announcement(_of_a_recipe().decode()), ISSUER.public)
    issue, secret = issuing(ISSUER, SECRET, SESSION, tasks), DEVICE.to_bytes()
    asking = cast("Any", SimpleNamespace(identity=DEVICE.public))
    keys = b"".join(report_key(secret, each.id).public for each in tasks)

    def signed(keys: bytes) -> bytes:
        return keys + DEVICE.sign(keys_statement(ISSUER.public, SESSION, keys))

    given = issue(asking, signed(keys))

    def asked(data: bytes) -> None:
        must(issue(asking, data) == given and data == signed(keys))

    def asked_and_signed(data: bytes) -> None:
        found = issue(asking, signed(data))
        must(len(found) == ISSUED * len(tasks) and (found == given) == (data == keys))

    def received(data: bytes) -> None:
        async def answer(_: bytes, keys: bytes) -> bytes:  # noqa: ARG001 - whatever is asked
            return data

        held = ReportCredentials(SESSION, secret, ISSUER.public, answer)
        ended(held.fetch(tasks))
        must(data == given and held.held(tasks[0]).task_id == tasks[0].id)

    return {
        "keys that ask for credentials": Reader([signed(keys)], in_words(asked)),
        "keys that ask for credentials, signed when spoilt": Reader([keys], in_words(asked_and_signed)),
        "credentials, given to a device": Reader([given], received),
    }


def _shuffled() -> dict[str, Reader]:
    """What a device alone is told of a round through a shuffler, and what the shuffler is sent."""
    carried = _through_a_shuffler()
    terms = batch_terms(carried, ISSUER.public, ANALYSER.public)
    credential = shuffle_credential.issued(ISSUER, SECRET, terms.digest, b"ann")
    messages = [bytes(terms.message_bytes)] * terms.messages
    request = submitted(terms, MIX.public, credential, messages, SECRET)
    told = ANALYSER.public + credential
    lines = cast("Any", None)

    def heard(data: bytes) -> None:
        reason = ShufflerRoute(carried, RULES, lines, data, ISSUER.public).refusal()
        if reason is not None:
            raise Refused(reason)
        must(data == told)

    def sent(data: bytes) -> None:
        must(read_submission(terms, MIX, data) == (credential[:32], b"".join(messages)) and data == request)

    return {
        "credential and key of a shuffled round": Reader([told], heard),
        "submission to a shuffler": Reader([request], sent),
    }


def _through_a_shuffler() -> CarriedTask:
    query = Query(Counts(Leaves.at_level(Quadtree.world(depth=2), 1), AtMostRows(1)), Fraction(1))
    cohort = Cohort(60, 60, Fraction(1, 4), Fraction(1, 10))
    round_ = Task("homes", "a map", 1, query, PureDP(1), PureDP(1), cohort)
    return CarriedTask(round_, ByShuffler(ONE, 45, MIX.public.hex()), "ab" * 32, 1_000_000)
