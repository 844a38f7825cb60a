"""What a campaign or a study said first, kept for good: a later task that says something else is refused.

A server names the budget, the purpose, the mode and the cohort in every task. If a device believed each task, a
campaign could say 0.2, be paid 0.2, and then say 0.5. So the device keeps what it agreed to first, sealed, in the
transaction of its first answer. Of a study it also keeps the analysis, and that it asks recipes at all.
"""

import json
from dataclasses import dataclass

from hazemap.codec import dumps
from hazemap.federated.device.encrypted_store import EncryptedStore, Write
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ReportCarrier
from hazemap.privacy.budget import PureDP

WHAT = {
    "purpose": "its purpose",
    "budget": "its budget",
    "cohort": "its cohort, or the mode of its protocol",
    "carrier": "who carries its reports",
}
STUDY = {"analysis": "what it asks about"}


@dataclass(frozen=True)
class CampaignTerms:
    """The terms of every campaign and study that one device has agreed to; one small read a session."""

    store: EncryptedStore
    device: int

    def refusal(self, task: Task, carrier: ReportCarrier | None = None) -> str | None:
        """Why this task is not of the campaign that was agreed to; None where it is, and for a new campaign."""
        first = self._first(task.campaign)
        if first is None:
            return None
        now, kind = _terms(task, carrier), "campaign" if task.recipe is None else "study"
        changed = [words for name, words in (WHAT | STUDY).items() if first.get(name) != now.get(name)]
        return (
            f"the {kind} {task.campaign!r} has changed {' and '.join(changed)} since this device first agreed to it"
            if changed
            else None
        )

    def agreed(self, task: Task, carrier: ReportCarrier | None = None) -> tuple[Write, ...]:
        """The statement that keeps what a new campaign says; none for a campaign that is known.

        It fails where another process has agreed to the same campaign meanwhile.
        """
        if self._first(task.campaign) is not None:
            return ()
        tag = self._tag(task.campaign)
        sealed = self.store.seal("campaigns", self.device, tag, json.dumps(_terms(task, carrier)).encode())
        return (Write("INSERT INTO campaigns VALUES (?, ?, ?)", (self.device, tag, sealed)),)

    def _first(self, campaign: str) -> dict[str, str] | None:
        tag = self._tag(campaign)
        found = self.store.read("SELECT sealed FROM campaigns WHERE device = ? AND tag = ?", self.device, tag)
        if not found:
            return None
        terms: dict[str, str] = json.loads(self.store.unseal("campaigns", self.device, tag, found[0][0]))
        return terms

    def _tag(self, campaign: str) -> bytes:
        return self.store.tag(self.device, b"campaign" + campaign.encode())


def _terms(task: Task, carrier: ReportCarrier | None) -> dict[str, str]:
    budget = str(task.budget.epsilon) if isinstance(task.budget, PureDP) else dumps(task.budget)
    about = {} if task.recipe is None else {"analysis": task.recipe.analysis}
    carried = {} if carrier is None else {"carrier": dumps(carrier)}
    return {"purpose": task.purpose, "budget": budget, "cohort": dumps(task.cohort)} | about | carried
