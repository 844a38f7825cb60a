"""What a campaign leaves behind on the disks of a server and of devices, and what must hold of it."""

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import nbinom

from hazemap.encoders.encoder import total
from hazemap.engines.memory import MemoryTable
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.privacy_account import DeviceCharge, PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.trust.cohort_assumptions import SecureSumPrices
from hazemap.privacy.ledger import Ledger, LedgerCharge
from hazemap.releases import Release

STAGES = ("keys", "shares", "masked", "assent", "unmask")
"""Of a semi-honest session, in order."""

_CAMPAIGN = "SELECT state FROM campaigns WHERE name = ?"
_SHARDS = (
    "SELECT session, round, number, attempt, state, people, terms FROM shards WHERE campaign = ? "
    "ORDER BY round, number, attempt"
)
_LAST = "SELECT max(round) FROM exchanges WHERE campaign = ?"
_ENDS = (
    "SELECT count(events.seq) FROM shards LEFT JOIN events ON events.session = shards.session AND position = -1 "
    "WHERE campaign = ? AND state = 'open' GROUP BY shards.session"
)
_SESSIONS = "SELECT device, tag, answered, sealed IS NOT NULL FROM sessions"
_CHARGES = "SELECT device, count(*) FROM charges GROUP BY device"


class Shard(NamedTuple):
    """A secure sum, as the server's database tells of it."""

    session: str
    round: int
    number: int
    attempt: int
    state: str
    people: int
    terms: SessionParameters


def rows(database: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a database holds that nobody, or somebody, is writing to: a copy is read, so that nothing is mended."""
    with tempfile.TemporaryDirectory() as folder:
        while True:
            before = _changed(database)
            for end in ("", "-wal"):
                (Path(folder) / f"copy{end}").unlink(missing_ok=True)
                if (part := database.with_name(database.name + end)).exists():
                    shutil.copy(part, Path(folder) / f"copy{end}")
            if _changed(database) == before:  # else the one may be of before a checkpoint, and the other of after it
                break
        with closing(sqlite3.connect(Path(folder) / "copy")) as copy:
            return copy.execute(sql, values).fetchall()


def _changed(database: Path) -> tuple[int, int] | None:
    """When the file itself was written last, which a checkpoint does."""
    if not database.exists():
        return None
    found = database.stat()
    return found.st_mtime_ns, found.st_size


def instant(database: Path, ledger: Ledger, campaign: Campaign) -> tuple[int, str]:
    """The round and the stage in which a server was killed, by what is on its disk."""
    try:
        states = rows(database, _CAMPAIGN, campaign.name)
    except sqlite3.OperationalError:  # there are no tables yet
        states = []
    if not states:
        return 0, "order"
    if states == [("done",)]:
        return 0, "done"
    if campaign.dataset not in {dataset.name for dataset in ledger.datasets()}:
        return 0, "unpaid"
    [(answered,)] = rows(database, _LAST, campaign.name)
    shards = [Shard(*row) for row in rows(database, _SHARDS, campaign.name)]
    if not any(shard.round > (answered or 0) for shard in shards):
        return answered or 0, "between"
    ends = [number for (number,) in rows(database, _ENDS, campaign.name)]
    return answered or 0, (*STAGES, "opening")[min(ends, default=len(STAGES))]


class Sessions(NamedTuple):
    """The sessions of a device's store: of each the stages that were answered, and whether it is still open."""

    answered: dict[tuple[int, bytes], int]
    open: set[tuple[int, bytes]]


def sessions(store: Path) -> Sessions:
    """At this instant every masked vector has its charge, and every charge its masked vector: or this fails."""
    found = rows(store, _SESSIONS)
    charges = dict(rows(store, _CHARGES))
    masked = Counter(device for device, _, answered, _ in found if answered >= Stage.MASKED - 1)
    assert charges == dict(masked), "a masked vector without its charge, or a charge without its vector"
    answered = {(device, tag): answered for device, tag, answered, _ in found}
    return Sessions(answered, {(device, tag) for device, tag, _, going in found if going})


@dataclass(frozen=True)
class LeftBehind:
    """A campaign that is over: its release, its page of the ledger, its secure sums, and its devices' accounts."""

    campaign: Campaign
    release: Release
    records: list[LedgerCharge]
    shards: list[Shard]
    charges: dict[tuple[str, int], list[DeviceCharge]]

    @classmethod
    def read(cls, campaign: Campaign, server: Path, stores: Iterable[Path]) -> "LeftBehind":
        """From the folder of the server and the stores of the devices."""
        charges = {}
        for path in stores:
            with EncryptedStore.opened(path) as store:
                for device in enrolment.devices(store):
                    every = PrivacyAccount(store, device).charges()
                    charges[path.name, device] = [each for each in every if each.campaign == campaign.name]
        found = rows(server / "server.sqlite", _SHARDS, campaign.name)
        shards = [Shard(row[0].hex(), *row[1:6], SessionParameters.from_bytes(row[6])) for row in found]
        records = Ledger(server / "ledger.sqlite").history(campaign.dataset)
        release = Release.open(server / "releases" / f"{campaign.name}.parquet")
        return cls(campaign, release, records, shards, charges)

    @property
    def opened(self) -> list[Shard]:
        """The sums that count."""
        return [shard for shard in self.shards if shard.state == "opened"]

    def is_right(self) -> None:
        """All that holds whatever was killed."""
        self._is_paid_once()
        self._was_opened_once()
        self._was_charged_once()
        prices = SecureSumPrices(self.campaign.budget, self.campaign.cohort)
        again = self.release.replay(prices)
        assert np.array_equal(again.map.values, self.release.map.values), "the transcript makes another map"

    def _is_paid_once(self) -> None:
        assert len(self.records) == 1, f"the ledger has {len(self.records)} charges"
        [record] = self.records
        assert (record.charge.price, record.released) == (self.campaign.budget, True)
        assert record.statement == self.release.statement, "the ledger tells of another release"

    def _was_opened_once(self) -> None:
        rounds = range(1, len(self.release.transcript) + 1)
        places = Counter((shard.round, shard.number) for shard in self.opened)
        wanted = {(round_, number) for round_ in rounds for number in range(1, len(self.campaign.cohort.shards) + 1)}
        assert places == Counter(wanted), f"not every shard was opened once: {places}"
        for round_, (_, answer) in zip(rounds, self.release.transcript, strict=True):
            assert answer.people == sum(shard.people for shard in self.opened if shard.round == round_)
        for shard in self.opened:
            assert shard.terms.survivors <= shard.people <= shard.terms.clients

    def _was_charged_once(self) -> None:
        asked = {shard.session: shard for shard in self.shards}
        for charges in self.charges.values():
            assert len({charge.session for charge in charges}) == len(charges), "one answer was charged twice"
            assert all(asked[charge.session].round == charge.round for charge in charges)
            rounds = {charge.round: charge.epsilon for charge in charges}  # one that was begun again is paid again
            assert sum(rounds.values(), Fraction(0)) <= self.campaign.budget.epsilon
        paid = Counter(charge.session for charges in self.charges.values() for charge in charges)
        for shard in self.opened:
            assert shard.people <= paid[shard.session] <= shard.terms.clients, "somebody was counted without a charge"

    def is_as_if_nothing_had_been(self) -> None:
        """Beyond that: everybody answered every round once."""
        rounds = list(range(1, len(self.release.transcript) + 1))
        assert {shard.attempt for shard in self.shards} == {1}, "a shard was begun again"
        assert all(shard.people == shard.terms.clients for shard in self.opened), "a device was lost"
        for charges in self.charges.values():
            assert [charge.round for charge in charges] == rounds, "a device did not pay for every round once"
        spent = {sum(charge.epsilon for charge in charges) for charges in self.charges.values()}
        assert spent == {self.campaign.budget.epsilon}

    def ranks(self, lon: np.ndarray, lat: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        """Where the error of each number lies in the law of its noise: independent and uniform, if that is its law.

        Person i, at these places, has the i-th account. Those whose vectors are in an answer are those who paid for
        it; a round is left out where one of them was killed between paying and sending.
        """
        found = [np.zeros(0)]
        for round_, (question, answer) in enumerate(self.release.transcript, 1):
            counted = {shard.session for shard in self.opened if shard.round == round_}
            every = enumerate(self.charges.values())
            who = [person for person, charges in every if counted & {charge.session for charge in charges}]
            if len(who) == answer.people:
                exact = total(question.encoder, MemoryTable(np.arange(len(who)), {"lon": lon[who], "lat": lat[who]}))
                found.append(rank(answer.sums - exact, *self._noise(round_), chance))
        return np.concatenate(found)

    def _noise(self, round_: int) -> tuple[Fraction, Fraction]:
        """The shares of noise that are in each number of an answer, and their scale."""
        shards = [shard for shard in self.opened if shard.round == round_]
        [scale] = {shard.terms.noise.scale for shard in shards}
        return sum((Fraction(shard.people, shard.terms.noise.parties) for shard in shards), Fraction(0)), scale


def rank(errors: np.ndarray, shape: Fraction, scale: Fraction, chance: np.random.Generator) -> np.ndarray:
    """P(Z < error) and a random part of P(Z = error), Z = X − Y, X and Y from Pólya(shape, e^(−1/scale))."""
    polya = nbinom(float(shape), 1 - exp(-1 / scale))
    one = polya.pmf(np.arange(int(polya.isf(1e-15)) + 2))
    law = np.convolve(one, one[::-1])
    below = np.cumsum(law) - law
    at = errors + len(one) - 1
    assert ((at >= 0) & (at < len(law))).all(), "an error that no noise explains"
    return below[at] + chance.random(len(at)) * law[at]
