"""Runs in which people's devices answer: with reports and sums, with answers to a recipe, or through a shuffle.

Messages of a shuffle go through a shuffler as it is served, with its store, into an analyser. Three parties look on:
the analyser, who enrols people and so knows their numbers; the same with the people who work with it, and know what
they sent; and the shuffler, who knows who sent what and tries to read it.
"""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap import codec
from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, unpack
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.shuffle import sealed_parts
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms, ShuffleParameters
from hazemap.federated.protocols.shuffle.submission import SERIAL, issued, submitted
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType, EventValue
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy import AnalysisBudget, Carrier, DeviceLimit, FieldBudget, ShippedPolicy
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.service.store import Store, Write
from hazemap.federated.shuffler import shuffler_service
from hazemap.federated.shuffler.shuffler_service import SCHEMA, BatchLimits
from hazemap.federated.study.population_study import EventPopulation, PopulationStudy
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import RecipeSecureSums, SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.lab.audit.audited_settings import (
    LOCAL,
    ONE_REPORT,
    REPORT,
    REPORTS,
    SECURE_SUM,
    STUDY,
    TWO_SERVERS,
    AuditedSetting,
)
from hazemap.lab.audit.observed_output import Observation, ending
from hazemap.lab.audit.synthetic_people import File
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.algorithm_session import Exchange, Unrecorded, replay, run
from hazemap.queries.noisy_queries import Trust
from hazemap.readers.open_table import open_table
from hazemap.specs.method_from_name import among_devices
from hazemap.tables.votes import VotesTable
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

DROPOUT = Fraction(1, 2)
"""So much of a shard may be missing, where people drop out at all; and half of it has to bring all of the noise."""


def answer_devices(setting: AuditedSetting, source: str, people: int) -> tuple[str, list[float]]:
    """The transcript of a run among the people of a file, and the map's numbers.

    All stand in one shard; nobody cheats, and nobody drops out unless the setting says so. Under local privacy `people`
    report, one by one.
    """
    if setting.dropping is not None:
        table = _of_devices(source)
        trust: Trust = SimulatedSecureAggregation(table, _cohort(setting, people), dropping=Fraction(setting.dropping))
    else:
        reported = setting.trust == REPORTS
        opened = _of_devices(source) if reported else open_table(source, person="user", lon="lon", lat="lat")
        trust = _trust(setting, opened, people)
    done = run(_algorithm(setting), trust, setting.budget, Unrecorded())
    return codec.dumps(done.transcript), np.asarray(done.value.values).tolist()


def followed(setting: AuditedSetting, people: int, seen: Observation) -> bool:
    """Whether all questions and the map's numbers follow from the answers, without a table."""
    nobody = File(()).table
    trust = _trust(setting, nobody, people)
    try:
        made = replay(_algorithm(setting), trust.prices(setting.budget), setting.budget, seen.transcript)
    except HazemapError:
        return False
    ours, theirs = np.asarray(made.value.values), seen.columns["count"]
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, rtol=1e-9, atol=1e-9, equal_nan=True))


class _SeenByAServer(TwoServers):
    """What somebody sees who works with one of the two servers, and so knows its noise."""

    one_is_known = True


class _WalkSeenByAServer(OneReportTrust):
    """The same, where people report once."""

    one_is_known = True


def _trust(setting: AuditedSetting, table: VotesTable, people: int) -> Trust:
    """Who answers; of two servers only one keeps its noise to itself. Reports say all that the price buys."""
    if setting.trust in (TWO_SERVERS, ONE_REPORT):
        batch = ReportBatch(people, max(people - 1, 1))
        return _SeenByAServer(table, batch) if setting.trust == TWO_SERVERS else _WalkSeenByAServer(table, batch, 12)
    if setting.trust == LOCAL:
        return LocalReports(table, people)
    local = None if setting.trust == SECURE_SUM else Fraction(setting.local or "8")
    return SimulatedSecureAggregation(table, _cohort(setting, people), local_epsilon=local)


def _of_devices(source: str) -> MemoryTable:
    """A row a person, so that also those who are in no cell are people, and may drop out."""
    with Path(source).open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("lon", "lat")}
    return MemoryTable(np.arange(len(rows)), columns)


def _cohort(setting: AuditedSetting, people: int) -> Cohort:
    """In semi-honest mode where people drop out: the other would need more of them for so many to be missing."""
    if setting.dropping is None:
        return Cohort(people, people, Fraction(0), Fraction(0))
    return Cohort(people, people, DROPOUT, Fraction(0), mode=Mode.SEMI_HONEST)


def _algorithm(setting: AuditedSetting) -> Any:
    """The method, with the parameters for devices where they sum, and those for a walk where they report once."""
    if setting.trust == LOCAL:
        return setting.algorithm
    found = among_devices(setting.algorithm, 1 << 16)
    if setting.trust == ONE_REPORT and isinstance(found, Adaptive):
        return Adaptive.for_one_report(found.tree, found.bounding, 1 << 16)
    return found


def observe_devices(raw: tuple[str, list[float]]) -> Observation:
    """What `answer_devices` gave, as the public sees it."""
    transcript = tuple(Exchange(question, answer) for question, answer in codec.loads(raw[0]))
    return Observation(size=len(raw[0]), columns={"count": np.array(raw[1])}, transcript=transcript)


WORDS = ("so", "be", "it")
_STREAM = EventStream("keyboard", (EventField("word", EventType.TEXT),), keep=30)
_FIELD, _MUCH, _SOME = StreamFieldName("keyboard", "word"), Fraction(100), Fraction(1, 1000)


def answer_recipes(
    setting: AuditedSetting, content: bytes, folder: Path, runs: int, minimum: int
) -> list[dict[str, list[float]] | str]:
    """What is seen of so many runs: the numbers of a report or of an answer, or the words of a refusal.

    `content` has a line for each device, with its word or none. Sums are of all of them, and the recipe states that
    they are of `minimum` people or more.
    """
    words = [line["word"] for line in csv.DictReader(content.decode().splitlines())]
    with _devices(folder / "devices.sqlite", words) as people:
        return [
            ending(lambda: {"answer": _recipe_answer(setting, people, len(words), minimum).astype(float).tolist()})
            for _ in range(runs)
        ]


def _recipe_answer(setting: AuditedSetting, people: EventPopulation, number: int, minimum: int) -> Ints:
    recipe = _recipe(setting, minimum)
    if setting.method == REPORT:
        [place] = people.recipe_bins(recipe).tolist()
        return recipe.law.report(Stream.from_os(), place, recipe.size).astype(np.int64)
    if setting.method == STUDY:
        return PopulationStudy(people, people.policy, recipe.analysis).ask(recipe).sums
    cohort = Cohort(number, number, dropout=Fraction(0), corrupt=Fraction(0), mode=Mode.SEMI_HONEST)
    return RecipeSecureSums(people, cohort).answer(recipe).sums


@contextmanager
def _devices(path: Path, words: list[str]) -> Iterator[EventPopulation]:
    with EncryptedStore.opened(path, create=True) as store:
        devices, now = enrolment.add(store, len(words)), datetime.now(UTC)
        events: dict[int, list[tuple[EventValue, ...]]] = {
            device: [(word,)] if word else [] for device, word in zip(devices, words, strict=True)
        }
        event_store.store_events(store, _STREAM, events, now.timestamp() - 60)
        yield EventPopulation(store, devices, _policy(), now)


def _policy() -> ShippedPolicy:
    """One that lets everything be asked that an audit asks."""
    analysis = AnalysisBudget(
        name="words",
        purpose="an audit",
        epsilon=_MUCH,
        delta=_SOME,
        reports=100,
        queries=AnyQueryOverFields((_FIELD,)),
        minimum_cohort=1,
        carriers=(Carrier.SECURE_SUMS,),
        cohort_fields=(),
    )
    return ShippedPolicy(
        name="audited",
        version=1,
        days=30,
        limits=(DeviceLimit(30, _MUCH, _SOME, 100),),
        streams=(_STREAM,),
        fields=(FieldBudget(_FIELD, Fraction(20), _MUCH, _SOME, 100),),
        analyses=(analysis,),
    )


def _recipe(setting: AuditedSetting, minimum: int) -> Recipe:
    return Recipe(
        id="words",
        version=1,
        analysis="words",
        purpose="an audit",
        query=SqlQuery("SELECT word FROM keyboard"),
        cohort=(),
        features=(Feature("word", Categories(WORDS)),),
        local_epsilon=Fraction(setting.local or "1"),
        epsilon=Fraction(setting.epsilon or "1"),
        delta=Fraction(setting.delta or "0"),
        minimum_cohort=minimum,
    )


ANALYSER, WITH_CORRUPT, SHUFFLER = "the analyser", "the analyser and a part of the people", "the shuffler"
PEOPLE, CORRUPT = 21, 2
"""People of a run, and how many of them work with the analyser. The first one is looked for."""

_SIZE, _SECURITY = 1, 8
_NOW = 1_000_000
KEY_OF_SHUFFLER = b"audited shuffler".ljust(32, b".")
"""What the shuffler's key is made of; a fault may know it, too."""


@dataclass(frozen=True)
class _Sent:
    """What one person sends, as they know it themselves."""

    serial: bytes
    noisy: Ints
    messages: list[bytes]


def answer_shuffles(
    setting: AuditedSetting, content: bytes, folder: Path, runs: int
) -> list[dict[str, list[float]] | str]:
    """What each party sees, so many times; or the words in which a run ended.

    `content` tells whether the first person has a row.
    """
    there = content == b"there"
    store = Store(folder / "shuffler.sqlite", SCHEMA)
    try:
        return [ending(lambda: _shuffle(Fraction(setting.epsilon or "1"), there, store)) for _ in range(runs)]
    finally:
        store.close()


def _shuffle(epsilon: Fraction, there: bool, store: Store) -> dict[str, list[float]]:
    stream, issuer, secret = Stream.from_os(), Identity.create(), os.urandom(SERIAL)
    own = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, KEY_OF_SHUFFLER)
    opens = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, os.urandom(32))
    noise = DistributedNoise(1 / epsilon, PEOPLE - CORRUPT)
    parts = ShuffleParameters(
        bytes(32), _SIZE, noise.bits(PEOPLE, 1, _SIZE), _SIZE, noise.parties, PEOPLE, security=_SECURITY
    )
    terms = BatchTerms(
        version=1,
        nonce=os.urandom(16),
        issuer=issuer.public,
        analyser=opens.public,
        contents=parts.digest,
        messages=parts.messages,
        message_bytes=parts.message_bytes,
        minimum=PEOPLE,
        people=PEOPLE,
        closes=_NOW + 1,
    )
    service = shuffler_service.ShufflerService(store, own, BatchLimits(least=PEOPLE))
    service.announce(terms, _NOW)
    everybody, writes = list[_Sent](), list[Write]()
    for person in range(PEOPLE):
        sums = np.array([there and person == 0], dtype=np.int64)
        noisy = sums + noise.share(stream, _SIZE)
        credential = issued(issuer, secret, terms.digest, b"%d" % person)
        sealed = sealed_parts.messages(parts, opens.public, noisy, stream)
        everybody.append(_Sent(credential[:SERIAL], noisy, sealed))
        request = submitted(terms, own.public, credential, sealed, os.urandom(32))
        writes += service.taking(terms.digest, request, _NOW)
    store.write_now(*writes)
    pieces = service.permute(terms.digest).pieces
    handed_on = b"".join(service.piece(terms.digest, number) for number in range(pieces))
    service.forget(terms.digest)
    size = terms.message_bytes
    every = [handed_on[start : start + size] for start in range(0, len(handed_on), size)]
    seen = {SHUFFLER: _tried(parts, own, everybody[0].messages)}
    return seen | _opened(parts, opens, every, everybody)


def _opened(
    parts: ShuffleParameters, key: HpkeKeyPair, every: list[bytes], everybody: list[_Sent]
) -> dict[str, list[float]]:
    """What an analyser makes of a batch: its sums, and the messages where its numbers put the first person."""
    sums = sealed_parts.opened(parts, key, every).sums
    rank = sorted(each.serial for each in everybody).index(everybody[0].serial)
    guessed = _tried(parts, key, every[rank * parts.messages : (rank + 1) * parts.messages])
    known = sum((each.noisy for each in everybody[-CORRUPT:]), np.zeros(_SIZE, dtype=np.int64))
    return {
        ANALYSER: [*map(float, sums), *guessed],
        WITH_CORRUPT: [*map(float, sums - known), *guessed],
    }


def _tried(parts: ShuffleParameters, key: HpkeKeyPair, messages: list[bytes]) -> list[float]:
    """How many of some messages a key opens, and what they add up to."""
    opened, total = 0, np.zeros(parts.block, dtype=np.int64)
    for message in messages:
        try:
            plain = sealed_parts.SUITE.open(key, message[:32], sealed_parts.INFO, parts.digest, message[32:])
        except Refused:
            continue
        total += unpack(plain[4:], parts.block, parts.bits)
        opened += 1
    mask = (1 << parts.bits) - 1
    return [float(opened), *map(float, lifted((total & mask).astype(np.uint32), parts.bits))]
