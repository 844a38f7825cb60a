"""Studies: series of recipe rounds within the budget of an analysis; their orders and their state as JSON."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor
from os import urandom
from typing import Any, NamedTuple

from hazemap.codec import dumps
from hazemap.errors import BudgetExceeded, HazemapError, InputError, StoreError
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import SignedPolicy, update_refusal
from hazemap.federated.recipes.policy_document import digest as policy_digest
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.announced_rounds import stored_announcement
from hazemap.federated.server.campaign_house import CampaignHouse
from hazemap.federated.server.campaign_spec import Deadlines, TrustOptions, of_names
from hazemap.federated.server.campaign_status import announced, shards_of_rounds
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.campaign_worker import CampaignCharge
from hazemap.federated.server.failed_round import FailedRound, any_too_old, forgotten, have_paid
from hazemap.federated.server.metrics import Metrics
from hazemap.federated.server.networked_secure_aggregation import DeviceRounds
from hazemap.federated.server.networked_two_servers import TwoServerRecipes, still_taken
from hazemap.federated.server.recipe_log import KEEP, RecipeLog
from hazemap.federated.server.roles import OperatorRole, Principal
from hazemap.federated.server.study_spec import NAME, StudySpec, recipe_from, study_from
from hazemap.federated.server.study_statement import assumed, study_statement
from hazemap.federated.server.study_worker import (
    NOTHING,
    Left,
    RoundWorker,
    failed,
    least,
    paid_of_analysis,
)
from hazemap.federated.service.store import Write, instant
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.field_types import check_fields
from hazemap.privacy.budget import exact
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import DEVICE

log = logging.getLogger("hazemap.federated.server")

RecipeJudge = Callable[[Recipe, ShippedPolicy, int], tuple[str, ...]]
"""Why a device that has told nothing yet would refuse a recipe where so many honest people are in the smallest sum.

It is the device's own code: the server runs no query itself.
"""

_STUDY = "SELECT text, id, created, ended, reason FROM campaigns WHERE name = ? AND state = 'study'"
_STUDIES = "SELECT name FROM campaigns WHERE state = 'study' ORDER BY created, name"
_TAKEN = "SELECT state FROM campaigns WHERE name = ?"
_NEW = "INSERT INTO campaigns (name, id, text, state, reason, created) VALUES (?, ?, ?, 'study', '', ?)"
_OWN = "INSERT INTO campaign_owners (campaign, owner, epsilon) VALUES (?, ?, ?)"
_OWNER = "SELECT owner FROM campaign_owners WHERE campaign = ?"
_OWNED = "SELECT epsilon FROM campaign_owners WHERE owner = ?"
_POLICIES = "SELECT text FROM policies ORDER BY version"
_KEEP_POLICY = "INSERT INTO policies (version, digest, text) VALUES (?, ?, ?)"
_COLUMNS = "round, recipe, epsilon, delta, state, reason, created, ended"
_ROUNDS = f"SELECT {_COLUMNS} FROM study_rounds WHERE study = ? ORDER BY round"  # noqa: S608 - columns of ours
_RUNNING = "SELECT study, round, recipe FROM study_rounds WHERE state = 'running' ORDER BY created"
_STOP = "UPDATE campaigns SET ended = ?, reason = ? WHERE name = ? AND state = 'study' AND ended IS NULL"
_SPENT = "UPDATE campaign_owners SET epsilon = ? WHERE campaign = ?"
_NO_SECRETS = "UPDATE announcements SET secret = NULL WHERE campaign = ?"
_STOPPED = (
    "SELECT name, reason FROM campaigns WHERE state = 'study' AND ended IS NOT NULL AND name IN "
    "(SELECT campaign FROM shards WHERE session = ? UNION SELECT campaign FROM announcements WHERE batch = ?)"
)
_ASK = (
    "INSERT INTO study_rounds (study, round, analysis, recipe, task, epsilon, delta, state, reason, created) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, 'running', '', ?)"
)


class UnknownStudy(InputError):
    """A study, or a round of one, that the server does not know."""


class StudyTaken(InputError):
    """A study that is being asked already, or a name that is taken."""


class StoredStudy(NamedTuple):
    """A study as it was ordered, and since when it is stopped, and by whom."""

    spec: StudySpec
    identifier: str
    created: str
    stopped: str | None
    reason: str


class StudyRound(NamedTuple):
    """A row of `study_rounds`."""

    round: int
    recipe: str
    epsilon: Fraction
    delta: Fraction
    state: str
    reason: str
    created: str
    ended: str | None


@dataclass
class _Running:
    worker: RoundWorker
    task: "asyncio.Task[None]"


class Studies:
    """All studies of a server: rounds go on where they were when it is started again.

    `ordering` is held while something is checked and begun, by whoever else spends an analyst's limit as well.
    """

    def __init__(
        self,
        house: CampaignHouse,
        ledger: Ledger,
        metrics: Metrics,
        judge: RecipeJudge | None,
        ordering: asyncio.Lock,
    ) -> None:
        self._house, self._ledger, self._metrics, self._judge = house, ledger, metrics, judge
        self.log = RecipeLog(house.store)
        self._ordering = ordering
        self._running: dict[str, _Running] = {}

    @property
    def asking(self) -> int:
        """How many rounds are running."""
        return len(self._running)

    async def start(self) -> None:
        """Go on with every round that was running; one that this version of hazemap cannot ask has failed.

        Messages of rounds that failed long ago are forgotten.
        """
        for name, round_, digest in self._house.store.read(_RUNNING):
            log.info("%s goes on with round %d", name, round_)
            try:
                self._run(self.study(name), recipe_from(self.log.text(digest)), round_)
            except StoreError:
                raise
            except HazemapError as error:  # nobody is kept from the other rounds by it
                log.error("%s, round %d cannot go on: %s", name, round_, error)
                await self._house.store.write(*failed(name, round_, f"this hazemap cannot go on with it: {error}"))
        if any_too_old(self._house.store):
            await self._house.store.write(forgotten())

    async def stop(self) -> None:
        """Leave everything as it is stored."""
        running = [each.task for each in self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def accept(self, signed: SignedPolicy) -> str:
        """Count by this policy from now on: that of the devices. Its digest; `Refused` where they would not take it."""
        async with self._ordering:
            held = await asyncio.to_thread(self._policies)
            policy = signed.verify(held[-1].key if held else signed.key)
            reason = update_refusal(policy, [each.policy for each in held])
            if reason:
                raise InputError(reason)
            digest = policy_digest(policy).hex()
            await self.log.policy(signed, Write(_KEEP_POLICY, (policy.version, digest, signed.to_json())))
            return digest

    async def begin(self, spec: StudySpec, who: Principal) -> None:
        """Begin a study: on the disk when this returns. Nothing is paid before its first round."""
        async with self._ordering:
            await asyncio.to_thread(self._can_begin, spec, who)
            await self._house.store.write(
                Write(_NEW, (spec.name, urandom(8).hex(), dumps(spec), instant())),
                Write(_OWN, (spec.name, who.name, str(spec.epsilon))),
            )

    async def ask(self, name: str, recipe: Recipe, who: Principal) -> int:
        """Begin a round that asks a recipe: its number. One that the study has asked is not asked, nor paid, again.

        Where the round failed, it goes on, for the charge that was made, as far as that is safe (`failed_round`).
        Everything that speaks against it is raised before anything is charged or sent.
        """
        async with self._ordering:
            study = await asyncio.to_thread(self.study, name)
            spec = study.spec
            self._may(name, who)
            told = await asyncio.to_thread(self.rounds, name)
            for each in told:
                if each.recipe == recipe.digest and each.state in ("running", "done"):
                    return each.round
            if study.stopped is not None:
                raise StudyTaken(f"the study {name!r} was {study.reason} on {study.stopped}: it asks nothing more")
            if stuck := self.stuck(name):
                raise StudyTaken(f"the study {name!r} waits for the server to be started again: {stuck}")
            if name in self._running:
                raise StudyTaken(f"the study {name!r} is being asked: wait until its round {told[-1].round} has ended")
            lost = [each for each in told if each.recipe == recipe.digest and each.state == "failed"]
            if lost and await self._resumed(study, recipe, lost[-1]):
                return lost[-1].round
            round_ = len(told) + 1
            task = await asyncio.to_thread(self._can_ask, spec, recipe, round_)
            where, price = (name, round_, spec.analysis), (str(recipe.epsilon), str(recipe.delta))
            await self.log.asks(
                recipe,
                task,
                Write(KEEP, (recipe.digest, dumps(recipe))),
                Write(_ASK, (*where, recipe.digest, task.digest.hex(), *price, instant())),
                forgotten(name),
            )
            self._run(study, recipe, round_)
            return round_

    async def _resumed(self, study: StoredStudy, recipe: Recipe, lost: StudyRound) -> bool:
        """Go on with a round that failed, if there are people who can answer it and have not paid for it.

        Not once its price no longer counts against the analysis in the policy's period: devices count from when they
        answer.
        """
        spec, store, round_ = study.spec, self._house.store, lost.round
        await asyncio.to_thread(self._judged, spec, recipe)
        if lost.created <= await asyncio.to_thread(self._period):
            return False
        if spec.carrier is not None:
            return await self._resumed_batch(study, recipe, round_)
        sessions = await asyncio.to_thread(FailedRound.read, store, spec.name, round_)
        paid = await asyncio.to_thread(have_paid, store, spec.name, round_)
        others = {device.identity for device in self._house.enrolled} - paid
        same = spec.cohort.sampling is Sampling.ONE and round_ > 1  # then there are no others
        if paid and not sessions.sessions and (same or len(others) < spec.cohort.people):
            return False
        await store.write(*sessions.resumed())
        log.info("%s goes on with round %d, which failed, in %d sessions", spec.name, round_, len(sessions.sessions))
        self._run(study, recipe, round_)
        return True

    async def _resumed_batch(self, study: StoredStudy, recipe: Recipe, round_: int) -> bool:
        """Go on with a round over two servers while they take its reports: with its people and batch, if it has any."""
        spec, store = study.spec, self._house.store
        begun = await asyncio.to_thread(stored_announcement, store, spec.name, round_)
        if begun is not None and not await asyncio.to_thread(still_taken, begun):
            return False
        await store.write(*FailedRound(spec.name, round_, ()).resumed())
        log.info("%s goes on with round %d, which failed, over %s", spec.name, round_, spec.trust)
        self._run(study, recipe, round_)
        return True

    async def end(self, name: str, who: Principal) -> None:
        """Stop a study for good: on the disk, and on the public log, when this returns.

        A round that is running ends without an answer. What was paid stays paid; what was not is the analyst's again.
        """
        async with self._ordering:
            study = await asyncio.to_thread(self.study, name)
            self._may(name, who)
            if study.stopped is not None:
                raise StudyTaken(f"the study {name!r} was {study.reason} on {study.stopped}: it is stopped already")
            running = self._running.get(name)
            if running is not None:
                running.task.cancel()
                await asyncio.gather(running.task, return_exceptions=True)
                await running.worker.end("stopped", f"the study was stopped by {who.name}; what it has cost stays paid")
                self._running.pop(name, None)
                self._metrics.study_rounds[running.worker.state] += 1
            paid = [each.epsilon for each in await asyncio.to_thread(self.rounds, name) if each.state != "refused"]
            await self.log.stops(
                study.spec,
                len(paid),
                Write(_STOP, (instant(), f"stopped by {who.name}", name)),
                Write(_SPENT, (str(sum(paid, Fraction(0))), name)),
                Write(_NO_SECRETS, (name,)),
            )
            log.info("%s is stopped by %s", name, who.name)

    def stopped(self, session: bytes) -> str | None:
        """What a device is told that answers in a session of a study that was stopped; None for any other."""
        for name, reason in self._house.store.read(_STOPPED, session, session):
            return f"the study {name!r} was {reason}: this session is over, and no other one follows"
        return None

    def all(self) -> list[str]:
        """The names of all studies, the oldest first."""
        return [str(name) for (name,) in self._house.store.read(_STUDIES)]

    def study(self, name: str) -> StoredStudy:
        """A study; `UnknownStudy` where there is none."""
        for text, *rest in self._house.store.read(_STUDY, name) if NAME.fullmatch(name) else ():
            return StoredStudy(study_from(text), *rest)
        raise UnknownStudy(f"the server knows no study {name!r:.70}")

    def rounds(self, name: str) -> list[StudyRound]:
        """Every round of a study, the oldest first."""
        return [
            StudyRound(number, digest, Fraction(epsilon), Fraction(delta), *rest)
            for number, digest, epsilon, delta, *rest in self._house.store.read(_ROUNDS, name)
        ]

    def left(self, spec: StudySpec) -> Left:
        """What a study may still cost, under its own limit and the one that the policy gives its analysis.

        Nothing, once it is stopped.
        """
        if self.study(spec.name).stopped is not None:
            return NOTHING
        policy = self._policy()
        budget = policy.analysis(spec.analysis)
        if budget is None:
            return NOTHING
        own = [(each.epsilon, each.delta) for each in self.rounds(spec.name) if each.state != "refused"]
        every = paid_of_analysis(self._house.store, spec.analysis, self._period())
        return least(
            Left(spec.epsilon, spec.delta, spec.reports).after(own),
            Left(budget.epsilon, budget.delta, budget.reports).after(every),
        )

    def _can_begin(self, spec: StudySpec, who: Principal) -> None:
        if self._house.store.read(_TAKEN, spec.name):
            raise StudyTaken(f"there is a study or a campaign {spec.name!r} already: each has a name of its own")
        policy = self._policy()
        analysis = policy.analysis(spec.analysis)
        if analysis is None:
            known = ", ".join(each.name for each in policy.analyses)
            raise InputError(f"the policy of the devices knows no analysis {spec.analysis}; it knows {known}")
        if spec.carrier is not None:
            self._house.peers.check(spec.carrier)
        if reason := spec.exceeds(analysis):
            raise BudgetExceeded(reason)
        if who.epsilon is None:
            return
        spent = sum((Fraction(epsilon) for (epsilon,) in self._house.store.read(_OWNED, who.name)), Fraction(0))
        if spec.epsilon > who.epsilon - spent:
            raise BudgetExceeded(
                f"this study may cost ε = {float(spec.epsilon):.6g}, but what {who.name} begins may cost "
                f"{float(who.epsilon - spent):.6g} more: ask the operator for a token with a higher limit"
            )

    def _can_ask(self, spec: StudySpec, recipe: Recipe, round_: int) -> Any:
        """The task; raises what speaks against it, the cheapest first."""
        task = spec.task(recipe, round_)
        policy, left = self._policy(), self.left(spec)
        if recipe.epsilon > left.epsilon or recipe.delta > left.delta or not left.reports:
            raise BudgetExceeded(
                f"the recipe {recipe.id} costs (ε, δ) = ({float(recipe.epsilon):.6g}, {float(recipe.delta):.3g}) and a "
                f"report, but the study {spec.name} has ({float(left.epsilon):.6g}, {float(left.delta):.3g}) and "
                f"{left.reports:,} reports left: state a lower price, or wait until the period of {policy.days} days "
                "has passed"
            )
        self._judged(spec, recipe)
        self._ledger.check(spec.analysis, spec.charge(recipe), DEVICE)
        return task

    def _judged(self, spec: StudySpec, recipe: Recipe) -> None:
        """`InputError` where devices would refuse a recipe under the policy that counts now."""
        if self._judge is None:
            raise InputError("this server was started without what checks recipes: start it with `hazemap server`")
        if reasons := self._judge(recipe, self._policy(), spec.honest):
            raise InputError(f"devices would refuse the recipe {recipe.id}: {'; '.join(reasons)}")

    def _may(self, name: str, who: Principal) -> None:
        if who.role is OperatorRole.ANALYST and self._house.store.read(_OWNER, name) != [(who.name,)]:
            raise InputError(f"the study {name!r} was begun by somebody else: begin one of your own")

    def _policies(self) -> list[SignedPolicy]:
        return [SignedPolicy.from_json(text) for (text,) in self._house.store.read(_POLICIES)]

    def _policy(self) -> ShippedPolicy:
        held = self._policies()
        if not held:
            raise InputError(
                "this server knows no policy of its devices, so it cannot tell what recipes may ask: the operator "
                "gives it one with `hazemap study policy`"
            )
        return held[-1].policy

    def _period(self) -> str:
        """When the policy's period began."""
        return instant(datetime.now(UTC) - timedelta(days=min(self._policy().days, 36_500)))

    def stuck(self, name: str) -> str | None:
        """Why a round does not get on until the server is started again; None where none is stuck."""
        running = self._running.get(name)
        error = running and running.task.done() and not running.task.cancelled() and running.task.exception()
        return str(error) if error else None

    def _run(self, study: StoredStudy, recipe: Recipe, round_: int) -> None:
        house, spec = self._house, study.spec
        task = spec.task(recipe, round_)
        devices = DeviceRounds(spec, house, once=True) if spec.carrier is None else TwoServerRecipes(spec, house)
        account = CampaignCharge(self._ledger, spec.analysis, f"study {spec.name} {study.identifier} round {round_}")
        worker = RoundWorker(devices, task, account, spec.charge(recipe), house.store)
        running = asyncio.get_running_loop().create_task(worker.run(), name=f"{spec.name} {round_}")
        self._running[spec.name] = _Running(worker, running)
        running.add_done_callback(lambda done: self._ended(spec.name, worker, done))

    def _ended(self, name: str, worker: RoundWorker, task: "asyncio.Task[None]") -> None:
        if task.cancelled():  # by whoever stops the server, or the study
            return
        if task.exception():
            return  # the store or the ledger cannot be used: the round is stuck until the server is started again
        with suppress(KeyError):
            del self._running[name]
        self._metrics.study_rounds[worker.state] += 1


_ANSWERS = "SELECT round, answer FROM exchanges WHERE campaign = ?"
_ANSWER = "SELECT answer FROM exchanges WHERE campaign = ? AND round = ?"


def study_status(studies: Studies, store: CampaignStore, name: str) -> dict[str, Any]:
    """All about one study, but the answers."""
    spec, _, created, stopped, reason = studies.study(name)
    left, shards = studies.left(spec), _turnouts(store, spec)
    return {
        "name": spec.name,
        "analysis": spec.analysis,
        "created": created,
        "state": "open" if stopped is None else "stopped",
        "stopped": stopped,
        "reason": reason,
        "budget": {"epsilon": str(spec.epsilon), "delta": str(spec.delta), "reports": spec.reports},
        "left": {"epsilon": str(left.epsilon), "delta": str(left.delta), "reports": left.reports},
        "people": spec.cohort.people,
        "trust": spec.trust,
        "assumptions": list(assumed(spec)),
        "rounds": [{**_row(studies, name, each), **shards.get(each.round, {})} for each in studies.rounds(name)],
    }


def round_answer(studies: Studies, store: CampaignStore, name: str, round_: int) -> dict[str, Any]:
    """One round, with its recipe once it is over, and its answer once it is answered: both in the codec's JSON."""
    spec = studies.study(name).spec
    found = [each for each in studies.rounds(name) if each.round == round_]
    if not found:
        raise UnknownStudy(f"the study {name!r} has no round {round_}")
    answers = [str(answer) for (answer,) in store.read(_ANSWER, name, round_)]
    shards = _turnouts(store, spec).get(round_, {})
    answer = answers[0] if answers and found[0].state == "done" else None
    over = found[0].state != "running"  # whoever waits asks again and again, and recipes may be long
    text = studies.log.text(found[0].recipe) if over else None
    return {**_row(studies, name, found[0]), **shards, "text": text, "answer": answer}


def study_release(studies: Studies, store: CampaignStore, name: str, round_: int | None) -> dict[str, Any]:
    """The answers of a study, or of one round, with their statement: what `releases.StudyAnswers` is made of.

    `StudyTaken` where nothing was answered, or that round was not.
    """
    spec, rounds = studies.study(name).spec, studies.rounds(name)
    answers = {int(number): str(answer) for number, answer in store.read(_ANSWERS, name)}
    done = [each for each in rounds if each.state == "done" and each.round in answers]
    chosen = [each for each in done if round_ in (None, each.round)]
    if not chosen:
        which = "round" if round_ is None else f"round {round_}"
        raise StudyTaken(f"the study {name!r} has no answered {which}, so there is nothing to release")
    texts = {each.round: studies.log.text(each.recipe) for each in chosen}
    paid = [(each.epsilon, each.delta) for each in rounds if each.state != "refused"]
    left_out = {each.round for each in rounds if each.state != "refused"} - set(texts)
    said = study_statement(spec, paid, [(number, recipe_from(text)) for number, text in texts.items()], left_out)
    return {
        "study": name,
        "statement": said.to_json(),
        "rounds": [{"round": number, "recipe": text, "answer": answers[number]} for number, text in texts.items()],
    }


def _turnouts(store: CampaignStore, spec: StudySpec) -> dict[int, dict[str, Any]]:
    """For each round that has begun, who has answered and who has not."""
    return shards_of_rounds(store, spec.name) if spec.carrier is None else announced(store, spec.name)


def number_of(text: str) -> int:
    """A number of a round in a path."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(f"rounds are numbered from 1; found {text!r:.20}")
    return int(text)


def _row(studies: Studies, name: str, each: StudyRound) -> dict[str, Any]:
    """A round; one that runs, and does not get on, says why."""
    stuck = studies.stuck(name) if each.state == "running" else None
    reason = f"waits for the server to be started again: {stuck}" if stuck else each.reason
    return {**each._asdict(), "reason": reason, "epsilon": str(each.epsilon), "delta": str(each.delta)}


@dataclass(frozen=True)
class StudyOrder:
    """Whose budget pays, how much, who is asked and trusted: the options of `hazemap study begin`.

    >>> StudyOrder("spring", "next_word", "0.5", 2000).study().cohort.shards
    (1000, 1000)
    """

    name: str
    analysis: str
    epsilon: str
    people: int
    delta: str = "1e-6"
    reports: int = 10
    shard: int | None = None
    dropout: str = "0.2"
    corrupt: str = "0.1"
    stage: float = 120.0
    quiet: float | None = None
    wait: float = 3600.0
    trust: str = "secure-sum"
    leader: str | None = None
    helper: str | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for lowest, name in ((2, "people"), (1, "reports"), (2, "shard"), (1, "least")):
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise InputError(f"{name} is {lowest:,} or more, not {value:,}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "StudyOrder":
        """Of the names of a form; `InputError` for a name that there is none of, and for one that is missing."""
        needed = {"name": "its own", "analysis": "whose budget pays", "epsilon": "of all rounds", "people": "a round"}
        return cls(**of_names(cls, data, needed))

    def study(self) -> StudySpec:
        """The study that is ordered; `InputError` says what of it cannot be."""
        cohort = Cohort(
            self.people,
            min(self.people, self.shard or 1000),
            exact(self.dropout, "--dropout"),
            exact(self.corrupt, "--corrupt"),
        )
        whom = TrustOptions(self.trust, self.leader, self.helper)
        return StudySpec(
            self.name,
            self.analysis,
            exact(self.epsilon, "--epsilon"),
            exact(self.delta, "--delta"),
            self.reports,
            cohort,
            Deadlines.all(self.stage, self.quiet),
            self.wait,
            carrier=whom.of_study(self.least, cohort.people - floor(cohort.people * cohort.dropout)),
        )
