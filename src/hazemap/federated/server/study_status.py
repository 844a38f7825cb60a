"""How a study is getting on: rounds, prices, refusals and answers as JSON."""

from typing import Any

from hazemap.errors import InputError
from hazemap.federated.server.campaign_status import announced, shards_of_rounds
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.studies import Studies, StudyRound, StudyTaken, UnknownStudy
from hazemap.federated.server.study_spec import StudySpec, recipe_from
from hazemap.federated.server.study_statement import assumed, study_statement

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
