"""A round of a study that was not opened: why, who has paid for it, and how it goes on for the same charge.

A person pays for every report that their device sends. So within one charge nobody is asked for a second one: that
would be a second price, and the ledger would know of one. A recipe that is asked again after its round failed

1. goes on with the sessions that were waiting for silent devices when they ended: the same people, stage and messages,
   and a device that has answered is not asked again;
2. else asks people whom this round has not asked for a report, where there are enough;
3. else begins another round, for another charge (decisions/0010).

The reason counts how many broke the protocol, declined, fell silent, and how many were left.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.secure_sum_plan import END_OF_STAGE, SecureSumPlan, ShardOutcome, Summary, identities
from hazemap.federated.service.store import Write, instant

RESUMABLE = timedelta(hours=20)
"""How long messages of a session that failed are kept: devices leave it a day after its time."""

_ROSTERS = "SELECT roster, summary FROM shards WHERE campaign = ? AND round = ?"
_LOST = (
    "SELECT session, number, summary FROM shards WHERE campaign = ? AND round = ? AND state = 'lost' ORDER BY attempt"
)
_LAST = "SELECT seq, position FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1"
_ENDED = "SELECT ended FROM study_rounds WHERE study = ? AND round = ? AND state = 'failed'"
_AGAIN = "UPDATE study_rounds SET state = 'running', reason = '', ended = NULL WHERE study = ? AND round = ?"
_NOT_ENDED = "DELETE FROM events WHERE session = ? AND seq = ?"
_REOPEN = "UPDATE shards SET state = 'open', people = NULL, summary = NULL WHERE session = ?"
_SET_ASIDE = "UPDATE shards SET state = 'left' WHERE campaign = ? AND round = ? AND state = 'lost'"
_FORGET = (
    "DELETE FROM events WHERE session IN "
    "(SELECT session FROM shards WHERE campaign = ? AND round = ? AND state = 'left')"
)
_TOO_OLD = (
    "FROM events WHERE session IN (SELECT shards.session FROM shards JOIN study_rounds ON "
    "study_rounds.study = shards.campaign AND study_rounds.round = shards.round "
    "WHERE study_rounds.state <> 'running' AND (study_rounds.ended < ? OR study_rounds.study = ?))"
)


def have_paid(store: CampaignStore, study: str, round_: int) -> set[bytes]:
    """The identities of all who may have sent a report in this round: those who were asked for one. O(people)."""
    return {
        identity
        for roster, summary in store.read(_ROSTERS, study, round_)
        if summary is None or Summary.parse(summary).sent
        for identity in identities(bytes(roster))
    }


def forgotten(study: str = "", now: datetime | None = None) -> Write:
    """Forget the messages of rounds that failed: of this study, which asks something else, and all that are too old."""
    return Write(f"DELETE {_TOO_OLD}", (instant((now or datetime.now(UTC)) - RESUMABLE), study))


def any_too_old(store: CampaignStore) -> bool:
    """Whether there are messages of rounds that failed too long ago to be gone on with."""
    return bool(store.read(f"SELECT 1 {_TOO_OLD} LIMIT 1", instant(datetime.now(UTC) - RESUMABLE), ""))


def ended_by(store: CampaignStore, session: bytes, summary: Summary) -> int | None:
    """The number of the event that ended a session whose silent devices can still answer; None for any other."""
    if not summary.silent:
        return None
    last = store.read(_LAST, session)
    return int(last[0][0]) if last and last[0][1] == END_OF_STAGE else None


def reopened(session: bytes, event: int) -> tuple[Write, ...]:
    """The statements after which a session waits again for whom it was waiting for before this event."""
    return Write(_NOT_ENDED, (session, event)), Write(_REOPEN, (session,))


@dataclass(frozen=True)
class FailedRound:
    """Round `round` of a study, which failed.

    >>> FailedRound("spring", 2, ()).resumed()[0].values
    ('spring', 2)
    """

    study: str
    round: int
    sessions: Sequence[tuple[bytes, int]]
    """those that can go on, each with the number of the event that ended it"""

    @classmethod
    def read(cls, store: CampaignStore, study: str, round_: int, now: datetime | None = None) -> "FailedRound":
        """From the store: the last attempt of each shard goes on, where silence ended it after reports were sent."""
        ended = [str(when) for (when,) in store.read(_ENDED, study, round_)]
        last = {number: (bytes(session), summary) for session, number, summary in store.read(_LOST, study, round_)}
        recent = ended > [instant((now or datetime.now(UTC)) - RESUMABLE)]
        found = {
            session: ended_by(store, session, Summary.parse(summary))
            for session, summary in last.values()
            if recent and summary and Summary.parse(summary).sent  # before that, others can be asked for nothing
        }
        return cls(study, round_, tuple((session, event) for session, event in found.items() if event is not None))

    def resumed(self) -> tuple[Write, ...]:
        """The statements after which it is running: in its sessions, or to be asked of others."""
        where = self.study, self.round
        return (
            Write(_AGAIN, where),
            *(write for session, event in self.sessions for write in reopened(session, event)),
            Write(_SET_ASIDE, where),
            Write(_FORGET, where),
        )


PAID = ". What the campaign has paid stays paid: "
"""Between why it failed and what to do about it."""

MOST_REASONS = 3
"""Reasons of culprits that are shown; the status has them all."""

MOST_LETTERS = 200
"""Of a reason that a device gave: what a device writes is its own."""


def failure(ended: Sequence[tuple[SecureSumPlan, ShardOutcome]], round_: int) -> str:
    """What to tell the operator of a round of which no shard was opened, by the last attempt at each shard.

    Each number is of people; nobody is named.
    """
    asked = sum(outcome.summary.clients for _, outcome in ended)
    needed = sum(plan.terms.survivors for plan, _ in ended)
    culprits = [why for _, outcome in ended for why in outcome.summary.culprits.values()]
    declined = sum(count for _, outcome in ended for count in outcome.summary.refusals.values())
    silent = sum(len(outcome.summary.silent) for _, outcome in ended)
    left = asked - sum(len({*outcome.summary.out, *outcome.summary.silent}) for _, outcome in ended)
    attempts = max(plan.attempt for plan, _ in ended)
    causes = [
        f"{len(culprits):,} broke the protocol ({'; '.join(sorted(set(culprits))[:MOST_REASONS])})" if culprits else "",
        f"{declined:,} declined ({_commonest(ended)})" if declined else "",
        f"{silent:,} did not answer in time" if silent else "",
    ]
    why = ", ".join(filter(None, causes)) or "nobody broke the protocol, declined or fell silent"
    reasons = "; ".join(sorted({outcome.summary.reason for _, outcome in ended if outcome.summary.reason}))
    return (
        f"round {round_}: none of {len(ended):,} shards could be opened, at attempt {attempts}. Of {asked:,} people "
        f"asked {why}; {left:,} were left, and {needed:,} had to be. {reasons}{PAID}`hazemap campaign resume` asks "
        "this round again, and `hazemap campaign release-partial` publishes what earlier rounds answered"
    )


def _commonest(ended: Sequence[tuple[SecureSumPlan, ShardOutcome]]) -> str:
    """The reason that most of those who declined gave."""
    reasons = Counter[str]()
    for _, outcome in ended:
        reasons.update(outcome.summary.refusals)
    reason = reasons.most_common(1)[0][0][:MOST_LETTERS]
    return f"most often: {''.join(filter(str.isprintable, reason))}"
