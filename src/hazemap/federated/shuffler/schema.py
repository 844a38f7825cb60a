"""The tables of a shuffler's store, the same for every database."""

from hazemap.federated.service.store import Schema

TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE batches (
        batch BLOB PRIMARY KEY,
        terms BLOB NOT NULL,
        state TEXT NOT NULL,
        people BIGINT NOT NULL,
        pieces BIGINT NOT NULL,
        digest BLOB,
        analyser TEXT NOT NULL
    )""",
    """CREATE TABLE submissions (
        batch BLOB NOT NULL REFERENCES batches (batch),
        serial BLOB NOT NULL,
        digest BLOB NOT NULL,
        messages BLOB NOT NULL,
        PRIMARY KEY (batch, serial)
    )""",
    """CREATE TABLE permuted (
        batch BLOB NOT NULL REFERENCES batches (batch),
        piece BIGINT NOT NULL,
        messages BLOB NOT NULL,
        PRIMARY KEY (batch, piece)
    )""",
)
"""One list of tables for every database.

* `facts`: the version, when the clock was looked at, and when the last of the forgotten batches closed.
* `batches`: each batch that was announced, and the name of who did. `state` is open, permuted or forgotten. A row stays
  until the batch could not be announced again, so that nobody opens a batch twice.
* `submissions`: what people sent to open batches, each under their number in this batch, with the digest of it.
* `permuted`: the messages of a permuted batch in the one order that leaves, in pieces. What a person sent is deleted
  in the transaction that writes these, so the order is drawn once, and nothing is kept of who sent what.
"""

SCHEMA = Schema("shuffler version", 1, TABLES)
