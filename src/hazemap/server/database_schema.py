"""What the store holds: one list of tables for every database.

* `devices`: who is enrolled; of a ticket only its SHA-256.
* `campaigns`: the order as the codec's JSON, and what became of it.
* `exchanges`: each round's question and answer, the campaign's transcript.
* `rounds`: what is asked in the round that is going on, as devices are shown it.
* `shards`: each secure sum that was ever begun, with all that a wire server is made of. Once it is over, `sums` or
  the reason why there are none, and a `summary` (survivors, refusals, bytes) as JSON.
* `events`: what happened in a shard, in order: a message of the device at a position, or (position -1) the end of a
  stage. They are deleted when the shard is over: a masked vector is of no more use then.
"""

VERSION = 1
"""The schema this hazemap writes, and the only one it reads."""

TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE devices (
        device TEXT PRIMARY KEY,
        identity BLOB NOT NULL UNIQUE,
        ticket BLOB NOT NULL,
        enrolled TEXT NOT NULL
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
)
