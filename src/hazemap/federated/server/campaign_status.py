"""How a campaign is getting on: numbers, reasons and the map so far, and nobody's answer."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hazemap import __version__
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.codec import loads, to_json
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.estimate.marked_counts import is_about_sides, people_of
from hazemap.federated.server.announced_rounds import DECLINED, SENT
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.secure_sum_plan import Summary
from hazemap.federated.server.shard import Shard
from hazemap.federated.service.store import instant
from hazemap.privacy.statement_facts import estimand
from hazemap.queries.algorithm_session import Exchange
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.values.cells_in_slots import AllSlots

_SHARDS = "SELECT round, number, state, people, summary FROM shards WHERE campaign = ? ORDER BY round, number, attempt"
_ANNOUNCED = (
    "SELECT round, state, reason, count(*) FROM announced_people JOIN announcements USING (batch) "
    "WHERE campaign = ? GROUP BY round, state, reason ORDER BY round"
)
_EXCHANGES = "SELECT round, question, answer FROM exchanges WHERE campaign = ? ORDER BY round"


def rounds(store: CampaignStore, campaign: Campaign) -> list[dict[str, Any]]:
    """Every round that has begun: what was asked, who answered, and what became of its shards."""
    shards = shards_of_rounds(store, campaign.name) if campaign.carrier is None else announced(store, campaign.name)
    answered = {}
    for round_, question, answer in store.read(_EXCHANGES, campaign.name):
        answered[round_] = _answered(campaign, loads(question), loads(answer))
    return [
        {"round": round_, **answered.get(round_, {"answered": False}), **(shards.get(round_) or _shards([]))}
        for round_ in sorted({*shards, *answered})
    ]


def announced(store: CampaignStore, name: str) -> dict[int, dict[str, Any]]:
    """For each round whose reports go to other servers: how many have reported, and why others declined."""
    found: dict[int, dict[str, Any]] = {}
    for round_, state, reason, people in store.read(_ANNOUNCED, name):
        told = found.setdefault(round_, _shards([]))
        if state == SENT:
            told["survivors"] += people
        elif state == DECLINED:
            told["refusals"][reason] = people
    return found


def shards_of_rounds(store: CampaignStore, name: str) -> dict[int, dict[str, Any]]:
    """For each round of a campaign or a study that has begun: who answered, who declined, and what it took."""
    shards: dict[int, list[tuple[int, str, int, Summary | None]]] = {}
    for round_, number, state, people, summary in store.read(_SHARDS, name):
        known = Summary.parse(summary) if summary else None
        shards.setdefault(round_, []).append((number, state, people or 0, known))
    return {round_: _shards(found) for round_, found in shards.items()}


def _answered(campaign: Campaign, question: Query, answer: Answer) -> dict[str, Any]:
    return {
        "answered": True,
        "cells": len(answer.sums),
        "share": float(question.share),
        "price": str(campaign.budget.part(question.share)),
        "stddev": float(answer.stddev.max()) / campaign.bounding.unit,
        "people": answer.people,
    }


def _shards(shards: Iterable[tuple[int, str, int, Summary | None]]) -> dict[str, Any]:
    """The last attempt of each shard counts; refusals, culprits and bytes are those of all attempts."""
    every = list(shards)
    last = {number: (state, people) for number, state, people, _ in every}
    summaries = [summary for *_, summary in every if summary]
    asked = sum(summary.clients for summary in summaries)
    dropped, refusals = Counter[str](), Counter[str]()
    culprits: dict[str, str] = {}
    for summary in summaries:
        dropped.update(summary.dropped)
        refusals.update(summary.refusals)
        culprits |= summary.culprits
    up, down = sum(summary.up for summary in summaries), sum(summary.down for summary in summaries)
    return {
        "survivors": sum(people for state, people in last.values() if state == "opened"),
        "shards": dict(Counter(state for state, _ in last.values())),
        "attempts": len(every),
        "lost": sorted({summary.reason for summary in summaries if summary.reason}),
        "dropped": {stage: number for stage, number in dropped.items() if number},
        "refusals": dict(refusals),
        "culprits": culprits,
        "bytes": {
            "up": up,
            "down": down,
            "up_per_device": round(up / asked) if asked else 0,
            "down_per_device": round(down / asked) if asked else 0,
            "most_up": max((summary.most_up for summary in summaries), default=0),
            "most_down": max((summary.most_down for summary in summaries), default=0),
        },
    }


def running(shards: Iterable[Shard]) -> list[dict[str, Any]]:
    """The secure sums that are going on."""
    return [
        {
            "round": shard.plan.round,
            "shard": shard.plan.number,
            "attempt": shard.plan.attempt,
            "clients": shard.plan.terms.clients,
            "stage": shard.sum.stage.name.lower(),
            "waiting": shard.waiting,
            "until": instant(shard.until),
            "dropped": shard.sum.dropped,
            "refusals": dict(Counter(shard.sum.refusals.values())),
        }
        for shard in shards
    ]


def facts(campaign: Campaign) -> dict[str, Any]:
    """What was ordered."""
    cohort = campaign.cohort
    return {
        "name": campaign.name,
        "purpose": campaign.purpose,
        "dataset": campaign.dataset,
        "method": type(campaign.algorithm).__name__,
        "trust": campaign.trust,
        "budget": {"epsilon": str(campaign.budget.epsilon), "text": str(campaign.budget)},
        "counted": estimand(campaign.bounding),
        "cohort": {
            "people": cohort.people,
            "shard": cohort.shard,
            "shards": len(cohort.shards),
            "dropout": float(cohort.dropout),
            "corrupt": float(cohort.corrupt),
            "sampling": cohort.sampling.value,
            "mode": cohort.mode.name.lower().replace("_", "-"),
        },
        "version": __version__,
    }


def spent(told: Iterable[Mapping[str, Any]]) -> float:
    """The part of the budget that answered queries have used; all of it is charged when the campaign begins."""
    return float(sum(each.get("share", 0.0) for each in told))


def so_far(transcript: Sequence[Exchange]) -> CellMap:
    """The finest cells that were asked for last, read from all answers about their tree: O(cells asked · depth).

    Free: it is made of answers that are paid for. `InputError` before there are any.
    """
    if transcript and is_about_sides(transcript[-1].question):
        return people_of(*transcript[-1])
    counted = [
        question.encoder.cells
        for question, _ in transcript
        if isinstance(question, Query) and isinstance(question.encoder, Counts)
    ]
    # Where slots are counted, all of them together make a map; each of them has one when all rounds are answered.
    every = [cells.cells if isinstance(cells, AllSlots) else cells for cells in counted]
    asked = [cells for cells in every if isinstance(cells, Leaves)]
    if not asked:
        raise InputError("no round of this campaign has been answered yet, so there is no map: look again later")
    same = [cells for cells in asked if cells.tree == asked[-1].tree]
    finest = max(reversed(same), key=lambda cells: cells.size)
    return read(transcript, finest, Reading.SHRUNK)


def plain(cellmap: CellMap) -> dict[str, object]:
    """A map as JSON: its tree and cells in the codec's way, and the numbers of each cell."""
    numbers = (("values", cellmap.values), ("unbiased", cellmap.unbiased), ("stddev", cellmap.stddev))
    return {"cells": to_json(cellmap.cells), **{name: np.round(array, 6).tolist() for name, array in numbers}}
