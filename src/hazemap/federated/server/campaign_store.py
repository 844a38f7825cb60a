"""The coordinator's store, and its tables: the same for every database."""

from pathlib import Path

from hazemap.codec import dumps, loads
from hazemap.federated.service.databases import Database
from hazemap.federated.service.store import Schema, Store, Write
from hazemap.queries.algorithm_session import Exchange
from hazemap.queries.noisy_queries import Answer, Question

TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE devices (
        device TEXT PRIMARY KEY,
        identity BLOB NOT NULL UNIQUE,
        ticket BLOB NOT NULL,
        enrolled TEXT NOT NULL,
        expires TEXT NOT NULL,
        revoked TEXT,
        head BLOB
    )""",
    """CREATE TABLE campaigns (
        name TEXT PRIMARY KEY,
        id TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        created TEXT NOT NULL,
        ended TEXT
    )""",
    """CREATE TABLE exchanges (
        campaign TEXT NOT NULL REFERENCES campaigns (name),
        round BIGINT NOT NULL,
        question TEXT NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (campaign, round)
    )""",
    """CREATE TABLE rounds (
        campaign TEXT NOT NULL REFERENCES campaigns (name),
        round BIGINT NOT NULL,
        task TEXT NOT NULL,
        PRIMARY KEY (campaign, round)
    )""",
    """CREATE TABLE shards (
        session BLOB PRIMARY KEY,
        campaign TEXT NOT NULL REFERENCES campaigns (name),
        round BIGINT NOT NULL,
        number BIGINT NOT NULL,
        attempt BIGINT NOT NULL,
        terms BLOB NOT NULL,
        seed BLOB NOT NULL,
        roster BLOB NOT NULL,
        state TEXT NOT NULL,
        sums BLOB,
        people BIGINT,
        summary TEXT,
        UNIQUE (campaign, round, number, attempt)
    )""",
    """CREATE TABLE events (
        session BLOB NOT NULL,
        seq BIGINT NOT NULL,
        position BIGINT NOT NULL,
        message BLOB NOT NULL,
        PRIMARY KEY (session, seq)
    )""",
    """CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        token BLOB NOT NULL UNIQUE,
        issued TEXT NOT NULL,
        expires TEXT NOT NULL,
        revoked TEXT,
        epsilon TEXT,
        campaigns BIGINT
    )""",
    """CREATE TABLE codes (
        code BLOB PRIMARY KEY,
        issued TEXT NOT NULL,
        expires TEXT NOT NULL
    )""",
    """CREATE TABLE code_uses (
        code BLOB PRIMARY KEY REFERENCES codes (code),
        device TEXT NOT NULL,
        used TEXT NOT NULL
    )""",
    """CREATE TABLE campaign_owners (
        campaign TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        epsilon TEXT NOT NULL
    )""",
    """CREATE TABLE audit_log (
        seq BIGINT PRIMARY KEY,
        entry TEXT NOT NULL,
        digest BLOB NOT NULL
    )""",
    """CREATE TABLE policies (
        version BIGINT PRIMARY KEY,
        digest TEXT NOT NULL,
        text TEXT NOT NULL
    )""",
    """CREATE TABLE recipes (
        digest TEXT PRIMARY KEY,
        text TEXT NOT NULL
    )""",
    """CREATE TABLE recipe_log (
        seq BIGINT PRIMARY KEY,
        entry TEXT NOT NULL,
        digest BLOB NOT NULL
    )""",
    """CREATE TABLE study_rounds (
        study TEXT NOT NULL REFERENCES campaigns (name),
        round BIGINT NOT NULL,
        analysis TEXT NOT NULL,
        recipe TEXT NOT NULL REFERENCES recipes (digest),
        task TEXT NOT NULL,
        epsilon TEXT NOT NULL,
        delta TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        created TEXT NOT NULL,
        ended TEXT,
        PRIMARY KEY (study, round)
    )""",
    """CREATE TABLE announcements (
        batch BLOB PRIMARY KEY,
        campaign TEXT NOT NULL REFERENCES campaigns (name),
        round BIGINT NOT NULL,
        task TEXT NOT NULL,
        secret BLOB,
        UNIQUE (campaign, round)
    )""",
    """CREATE TABLE announced_people (
        batch BLOB NOT NULL REFERENCES announcements (batch),
        device TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (batch, device)
    )""",
    """CREATE TABLE credited_people (
        batch BLOB NOT NULL REFERENCES announcements (batch),
        device TEXT NOT NULL,
        PRIMARY KEY (batch, device)
    )""",
)
"""One list of tables for every database.

* `devices`: who is enrolled; of a ticket only its SHA-256. `head` is what the device has deposited of its account, for
  the day on which its store is put back: the server cannot read it.
* `campaigns`: the order as the codec's JSON, and what became of it. A study is here too, in the state `study`: names
  are used once, and its rounds have shards and exchanges as those of campaigns have.
* `exchanges`: each round's question and answer, the campaign's transcript.
* `rounds`: what is asked in the round that is going on, as devices are shown it.
* `shards`: each secure sum that was ever begun, with all that a protocol server is made of. Once it is over, `sums` or
  the reason why there are none, and a `summary` (survivors, refusals, bytes) as JSON.
* `events`: what happened in a shard, in order: a message of the device at a position, or (position -1) the end of a
  stage. They are deleted when the shard is over: a masked vector is of no more use then.
* `tokens`: who may give orders or look; of a token only its SHA-256. `epsilon` and `campaigns` limit an analyst.
* `codes`, `code_uses`: enrolment codes, of each only its SHA-256, and which device used it: a code has one use.
* `campaign_owners`: whose token began a campaign, and its price.
* `audit_log`: who did what; each entry's hash covers the one before it.
* `policies`: the signed policies that devices ship with, as the operator gave them, by version.
* `recipes`, `recipe_log`: every recipe that was ever sent, by its digest; and when which recipe and policy was sent or
  given, in a public log whose entries' hashes cover the ones before.
* `study_rounds`: each round of a study, its recipe, its price and what became of it.
* `announcements`, `announced_people`: each round whose reports go to other servers, as devices are shown it, and what
  they said: `asked`, `sent` or `declined`. `secret` is what the coordinator opens the sums with; it is deleted then.
* `credited_people`: which of them were given credentials for their reports.
"""

SCHEMA = Schema("version", 1, TABLES)


class CampaignStore(Store):
    """Campaigns, devices, secure sums and who may do what; `TABLES` lists its tables.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = CampaignStore(Path(folder) / "server.sqlite")
    ...     found = store.read("SELECT name FROM facts")
    ...     store.close()
    >>> found
    [('version',)]
    """

    forgiving = False  # a coordinator numbers events and entries of logs before they are written

    def __init__(self, place: str | Path | Database) -> None:
        super().__init__(place, SCHEMA)


_EXCHANGES = "SELECT question, answer FROM exchanges WHERE campaign = ? ORDER BY round"
_EXCHANGE = "INSERT INTO exchanges (campaign, round, question, answer) VALUES (?, ?, ?, ?)"


def stored_exchanges(store: CampaignStore, name: str) -> list[Exchange]:
    """Every question of a campaign that was answered, with its answer."""
    return [Exchange(loads(question), loads(answer)) for question, answer in store.read(_EXCHANGES, name)]


def exchange_write(campaign: str, round_: int, question: Question, answer: Answer) -> Write:
    """The statement that stores the question of a round and its answer."""
    return Write(_EXCHANGE, (campaign, round_, dumps(question), dumps(answer)))
