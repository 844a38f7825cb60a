"""The tables of an aggregator's store, the same for every database."""

from hazemap.federated.service.store import Schema

TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE hpke_keys (
        config BIGINT PRIMARY KEY,
        kem BIGINT NOT NULL,
        kdf BIGINT NOT NULL,
        aead BIGINT NOT NULL,
        sealed BLOB NOT NULL,
        created BIGINT NOT NULL
    )""",
    """CREATE TABLE tasks (
        task BIGINT PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        terms BLOB NOT NULL
    )""",
    """CREATE TABLE reports (
        task BIGINT NOT NULL REFERENCES tasks (task),
        report BLOB NOT NULL,
        time BIGINT NOT NULL,
        body BLOB,
        PRIMARY KEY (task, report)
    )""",
    "CREATE INDEX whole_reports ON reports (task, time) WHERE body IS NOT NULL",
    """CREATE TABLE jobs (
        task BIGINT NOT NULL REFERENCES tasks (task),
        job BLOB NOT NULL,
        parameter BLOB NOT NULL,
        agg_param BLOB NOT NULL,
        first BLOB NOT NULL,
        last BLOB NOT NULL,
        step BIGINT NOT NULL,
        digest BLOB NOT NULL,
        answer BLOB NOT NULL,
        request BLOB,
        peer BLOB NOT NULL,
        PRIMARY KEY (task, job)
    )""",
    "CREATE INDEX open_jobs ON jobs (task) WHERE request IS NOT NULL",
    """CREATE TABLE claims (
        task BIGINT NOT NULL,
        level BIGINT NOT NULL,
        report BLOB NOT NULL,
        job BLOB NOT NULL,
        time BIGINT NOT NULL,
        counted BIGINT NOT NULL,
        PRIMARY KEY (task, level, report)
    )""",
    """CREATE TABLE shards (
        task BIGINT NOT NULL,
        parameter BLOB NOT NULL,
        bucket BLOB NOT NULL,
        job BLOB NOT NULL,
        share BLOB,
        count BIGINT NOT NULL,
        checksum BLOB NOT NULL,
        first_time BIGINT NOT NULL,
        last_time BIGINT NOT NULL,
        PRIMARY KEY (task, parameter, bucket, job)
    )""",
    """CREATE TABLE collected (
        task BIGINT NOT NULL,
        seq BIGINT NOT NULL,
        parameter BLOB NOT NULL,
        agg_param BLOB NOT NULL,
        first BLOB NOT NULL,
        last BLOB NOT NULL,
        PRIMARY KEY (task, first, parameter),
        UNIQUE (task, seq)
    )""",
    """CREATE TABLE questions (
        task BIGINT NOT NULL,
        first BLOB NOT NULL,
        last BLOB NOT NULL,
        place BIGINT NOT NULL,
        question BLOB NOT NULL,
        PRIMARY KEY (task, first, place)
    )""",
    """CREATE TABLE forgotten (
        task BIGINT PRIMARY KEY,
        earliest BIGINT NOT NULL
    )""",
    """CREATE TABLE credentials (
        task BIGINT NOT NULL REFERENCES tasks (task),
        serial BLOB NOT NULL,
        report BLOB NOT NULL,
        PRIMARY KEY (task, serial)
    )""",
    """CREATE TABLE aggregate_shares (
        task BIGINT NOT NULL,
        share BLOB NOT NULL,
        digest BLOB NOT NULL,
        answer BLOB NOT NULL,
        PRIMARY KEY (task, share)
    )""",
    """CREATE TABLE collections (
        task BIGINT NOT NULL,
        job BLOB NOT NULL,
        state TEXT NOT NULL,
        request BLOB NOT NULL,
        first BLOB,
        last BLOB,
        helper_request BLOB,
        count BIGINT NOT NULL,
        start BIGINT,
        duration BIGINT,
        leader_share BLOB,
        answer BLOB,
        problem BLOB,
        PRIMARY KEY (task, job)
    )""",
    """CREATE TABLE rejections (
        task BIGINT NOT NULL,
        reason TEXT NOT NULL,
        number BIGINT NOT NULL,
        PRIMARY KEY (task, reason)
    )""",
)
"""One list of tables for every database.

* `facts`: the version, and when the clock was looked at.
* `hpke_keys`: this aggregator's keys, the private ones sealed under the key in its folder.
* `tasks`: which tasks were ever served, with a digest of all that must not change of them; of one that is over, empty.
* `reports` (leader): what was uploaded. `body` is gone once it is not needed; the row stays, so that the report is not
  taken again, until it expires.
* `credentials`: serials that were spent, each with a digest of its report, for as long as the task is served.
* `jobs`: aggregation jobs. `request` is there while a job is under way: what a helper was sent first; what a leader
  sends, but of its first step the reports' ids alone.
* `claims`: which job verifies a report at a level, of which there is one where a report is aggregated once. Its key is
  the protection against replays. `counted` is 1 once the report is in a sum.
* `shards`: what a job adds to a bucket. `share` is gone once the bucket is collected, so that what is left is a count;
  in a task of questions it stays until its reports expire.
* `collected`: batches that were collected, with which parameter, in their order.
* `questions`: what was answered about a batch from one report of each person, in its order: the account of what is
  paid. The shares of its levels are kept without noise, each random alone; answers are kept sealed, and noise never.
* `forgotten`: the time before which a task's reports have expired and claims to them were deleted. It never goes back,
  whatever a clock does, and nothing older is claimed again.
* `aggregate_shares` (helper): answers, sealed for the collector with the noise in them. Noise itself is never stored.
* `collections` (leader): collection jobs; `state` is asked, closed, done or failed.
* `rejections`: how many reports of a task were not taken, by the reason.
"""

SCHEMA = Schema("aggregator version", 1, TABLES)
