"""Studies over HTTP, with made-up devices: within budgets, charged once, or refused in words."""

import asyncio
from fractions import Fraction

import pytest
from tests.federated.server.asking_studies import POLICY, SIGNED, StudyTown, recipe, study, typists
from tests.federated.server.fleet import AS_OPERATOR

from hazemap.algorithms import Flat
from hazemap.codec import dumps, loads
from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.study_spec import KNOWN
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.budget import PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Answer
from hazemap.spatial.quadtree import Quadtree


def played(folder, play, people=12):
    async def whole():
        async with StudyTown(folder / "town", typists(people)) as town:
            return await play(town)

    return asyncio.run(whole())


async def begun(town):
    assert (await town.policy()).status_code == 201
    assert (await town.study()).status_code == 201


def charges(town):
    return sum(record.charge.dataset == "keyboard" for record in town.ledger.history())


def test_a_round_is_logged_charged_and_answered_and_asking_it_again_costs_nothing(tmp_path):
    asked = recipe()

    async def play(town):
        await begun(town)
        first = await town.ask(asked)
        found = await town.answered(1)
        again = await town.ask(asked)
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        text = (await town.http.get(f"/v1/recipes/{asked.digest}")).text
        status = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).json()
        metrics = (await town.http.get("/metrics", headers=AS_OPERATOR)).text
        return first, found, again, log, text, status, metrics, charges(town)

    first, found, again, log, text, status, metrics, paid = played(tmp_path, play)
    assert (first.status_code, first.json()["round"], again.json()["round"]) == (201, 1, 1)
    assert (found["state"], found["survivors"], found["epsilon"]) == ("done", 12, "4")
    answer = loads(found["answer"])
    assert isinstance(answer, Answer) and (answer.people, len(answer.sums)) == (12, asked.size)
    assert loads(text, KNOWN) == asked
    assert RECIPE_LOG_FORMAT.checked(log).entries == 2 and asked.digest in log[1] and '"kind":"policy"' in log[0]
    with pytest.raises(CodecError, match="entry 2"):
        RECIPE_LOG_FORMAT.checked([log[0], log[1].replace('"people":12', '"people":13')])
    assert status["left"] == {"epsilon": "16", "delta": "9/1000000", "reports": 3}
    assert any("reports of" in each for each in status["assumptions"])
    assert 'study_rounds_total{outcome="done"} 1' in metrics
    assert paid == 1


HUGE = Categories(tuple(f"w{number}" for number in range(1 << 14)))


def test_what_a_study_may_not_ask_is_refused_in_words_before_anything_is_charged(tmp_path):
    tries = {
        "the analysis typos": recipe(analysis="typos"),
        "read keyboard.secret": recipe(sql="SELECT secret FROM keyboard"),
        "another purpose": recipe().__class__(**{**vars_of(recipe()), "purpose": "to know who you are"}),
        "may cost": recipe(epsilon=Fraction(4), delta=Fraction(1, 10**4)),
        "over at least 5 people": recipe(minimum_cohort=4),
        "over 100 people": recipe(minimum_cohort=100),
        "tells ε": recipe(epsilon=Fraction(1, 100)),
        "ε₀ = 8 at most": recipe(local_epsilon=Fraction(9), epsilon=Fraction(9)),
    }

    async def play(town):
        none = await town.study()
        await begun(town)
        everybody = Cohort(100_000, 10_000, Fraction(1, 6), Fraction(0), mode=Mode.SEMI_HONEST)
        crowd = study(name="crowd", cohort=everybody)
        assert (await town.study(crowd)).status_code == 201
        found = {words: await town.ask(asked) for words, asked in tries.items()}
        found["MiB"] = await town.ask(
            recipe().__class__(**{**vars_of(recipe()), "features": (Feature("w", HUGE),)}), "crowd"
        )
        found["no study"] = await town.ask(recipe(), "nobody")
        found["gives the analysis"] = await town.study(study(name="dear", epsilon=Fraction(21)))
        found["no analysis gossip"] = await town.study(study(name="gossip", analysis="gossip"))
        found["already"] = await town.study()
        found["hazemap study policy"] = none
        later = SignedPolicy.sign(POLICY, Identity.create())
        found["pinned key"] = await town.policy(later)
        found["needs a later one"] = await town.policy()
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        return found, log, charges(town), [device.statuses for device in town.devices]

    found, log, paid, statuses = played(tmp_path, play)
    for words, reply in found.items():
        assert reply.status_code in (402, 403, 404, 409, 422), (words, reply.text)
        assert words in reply.json()["error"], (words, reply.text)
    assert len(log) == 1, "only the policy was logged"
    assert paid == 0
    assert not any(statuses)


def vars_of(asked):
    return {name: getattr(asked, name) for name in asked.__dataclass_fields__}


def test_an_analysis_has_one_budget_whatever_the_studies_are_called(tmp_path):
    async def play(town):
        await begun(town)
        assert (await town.study(study(name="autumn", reports=5))).status_code == 201
        for number in range(2):
            await town.ask(recipe(f"r{number}"))
            assert (await town.answered(number + 1))["state"] == "done"
        found = []
        for number in range(3):
            reply = await town.ask(recipe(f"s{number}", epsilon=Fraction(4)), "autumn")
            found.append(reply.status_code)
            if reply.status_code == 201:
                await town.answered(reply.json()["round"], "autumn")
        last = await town.ask(recipe("s9"), "autumn")
        return found, last

    found, last = played(tmp_path, play)
    assert found == [201, 201, 201]
    assert (last.status_code, "0 reports left" in last.json()["error"]) == (402, True)


def test_a_round_that_too_few_answer_is_paid_and_says_why(tmp_path):
    async def play(town):
        await begun(town)
        for device in town.devices[:4]:
            device.declines = "the budget of this month is spent"
        await town.ask(recipe())
        found = await town.answered(1)
        return found, charges(town)

    found, paid = played(tmp_path, play)
    assert (found["state"], found["answer"], paid) == ("failed", None, 1)
    assert "declined (most often: " in found["reason"] and "stays paid" in found["reason"]
    assert found["refusals"]["the budget of this month is spent"] >= 4


def test_a_killed_server_goes_on_with_the_round_and_charges_it_once(tmp_path):
    async def play(town):
        await begun(town)
        await town.ask(recipe())
        for _ in range(200):
            for device in town.devices:
                await device.step(town.http)
            await asyncio.sleep(0.01)
            if any(stage == 2 for device in town.devices for _, stage in device.answered):
                break
        sessions = {session for device in town.devices for session, _ in device.answered}
        await town.kill()
        await town._start()
        found = await town.answered(1)
        after = {session for device in town.devices for session, _ in device.answered}
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        return found, charges(town), (bool(sessions), sessions == after), len(log)

    found, paid, same, entries = played(tmp_path, play)
    assert (found["state"], paid, same, entries) == ("done", 1, (True, True), 2)


def test_an_analyst_asks_in_studies_of_their_own_within_their_epsilon(tmp_path):
    async def play(town):
        await begun(town)
        held = {}
        for name in ("anna", "bert"):
            order = {"name": name, "role": "analyst", "days": 9, "epsilon": "10"}
            made = await town.http.post("/v1/tokens", headers=AS_OPERATOR, json=order)
            held[name] = {"Authorization": f"Bearer {made.json()['token']}"}
        found = [
            await town.study(study(name="a", epsilon=Fraction(11)), held["anna"]),
            await town.study(study(name="b", epsilon=Fraction(9)), held["anna"]),
            await town.study(study(name="c", epsilon=Fraction(2)), held["anna"]),
            await town.ask(recipe(), "b", held["bert"]),
            await town.http.post("/v1/policies", headers=held["anna"], content=SIGNED.to_json().encode()),
            await town.ask(recipe(), "b", held["anna"]),
        ]
        return [reply.status_code for reply in found], found[3].json()["error"]

    codes, words = played(tmp_path, play)
    assert codes == [402, 201, 402, 422, 403, 201]
    assert "begun by somebody else" in words


def test_a_study_and_a_campaign_that_begin_at_once_are_within_the_epsilon_of_one_analyst(tmp_path):
    mapped = Campaign(
        "homes", "a map", "town", Flat(Quadtree.world(depth=2), 1), PureDP(8), study().cohort, study().deadlines
    )

    async def play(town):
        await begun(town)
        order = {"name": "anna", "role": "analyst", "days": 9, "epsilon": "10", "campaigns": 9}
        made = await town.http.post("/v1/tokens", headers=AS_OPERATOR, json=order)
        anna = {"Authorization": f"Bearer {made.json()['token']}"}
        replies = await asyncio.gather(
            town.http.post("/v1/campaigns", headers=anna, content=dumps(mapped).encode()),
            *(town.study(study(name=name, epsilon=Fraction(8)), anna) for name in "abc"),
        )
        return sorted(reply.status_code for reply in replies)

    codes = played(tmp_path, play)
    assert codes.count(201) == 1, codes


def test_an_order_reads_back_as_it_was_written():
    assert loads(dumps(study()), KNOWN) == study()
