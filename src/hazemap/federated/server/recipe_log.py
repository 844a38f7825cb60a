"""Which recipes were sent to devices, and under which policies: a public log that only grows.

Anybody may read it, so whom a server asks for what cannot be hidden: a device shows the digest of every recipe that it
was sent, and the session in which it answers is bound to the task's digest, which covers the recipe. Whoever finds a
recipe on a device and not in the log, or two logs that differ, has caught the server.
"""

import re

from hazemap.errors import InputError
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.policy_document import digest as policy_digest
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT, Recipe
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.roles import HashChain
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.service.store import Write, instant
from hazemap.federated.trust.device_tasks import Task

DIGEST = re.compile(r"[0-9a-f]{64}")
_RECIPE = "SELECT text FROM recipes WHERE digest = ?"
_POLICY = "SELECT text FROM policies WHERE digest = ?"
KEEP = "INSERT INTO recipes (digest, text) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING"
"""Keep a recipe's text by its digest."""


class RecipeLog(HashChain):
    """The log of a server's store. An entry is on the disk before the recipe leaves."""

    def __init__(self, store: CampaignStore) -> None:
        super().__init__(store, "recipe_log", RECIPE_LOG_FORMAT)

    async def asks(self, recipe: Recipe, task: Task, *also: Write) -> None:
        """A recipe is about to be sent: on the disk when this returns, with what else is written."""
        where = task.campaign, task.round, task.cohort.people, task.digest.hex()
        await self.append(instant(), "recipe", recipe.id, recipe.version, recipe.digest, *where, also=tuple(also))

    async def policy(self, signed: SignedPolicy, *also: Write) -> None:
        """A policy begins to count."""
        policy = signed.policy
        values = instant(), "policy", policy.name, policy.version, policy_digest(policy).hex(), "", 0, 0, ""
        await self.append(*values, also=tuple(also))

    async def stops(self, study: StudySpec, rounds: int, *also: Write) -> None:
        """A study is stopped, after so many rounds: no recipe of it follows."""
        values = instant(), "stop", study.analysis, 0, "", study.name, rounds, 0, ""
        await self.append(*values, also=tuple(also))

    def text(self, digest: str) -> str:
        """What has this digest: a recipe in the codec's JSON, or a signed policy. `InputError` where nothing has."""
        for sql in (_RECIPE, _POLICY) if DIGEST.fullmatch(digest) else ():
            for (text,) in self._store.read(sql, digest):
                return str(text)
        raise InputError(f"no recipe and no policy has the digest {digest!r:.70}: GET /v1/recipes lists them all")
