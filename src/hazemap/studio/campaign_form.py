"""What a browser's form orders of devices: a `CampaignOrder` and the map's specification, checked before it is sent."""

from collections.abc import Mapping
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.device.policy.consent_policy import caution_about_small_sums
from hazemap.federated.server.campaign_spec import MAP, Campaign, CampaignOrder
from hazemap.federated.server.privacy_statement import assumed
from hazemap.specs.parsing import warning_about
from hazemap.studio.command_text import ServerCommands
from hazemap.studio.order_form import order_of

FIELDS = frozenset(MAP) - {"prior", "prior_is_public"}
"""What a form says of the map. First cells, which are read from a file, are for the command line."""


def ordered(data: Mapping[str, Any]) -> Campaign:
    """The campaign of a form; `InputError` says what of it cannot be."""
    order, map_ = _parts(data)
    return CampaignOrder.from_json(order).campaign(CampaignOrder.from_json(order).map_of(map_))


def review(data: Mapping[str, Any], commands: ServerCommands) -> dict[str, Any]:
    """What a campaign costs, whom it asks and what its promise assumes, in words, before it is sent."""
    order, map_ = _parts(data)
    campaign = ordered(data)
    cohort = campaign.cohort
    smallest = cohort.people if campaign.carrier else cohort.smallest
    cautions = (warning_about(campaign.budget), caution_about_small_sums(smallest))
    return {
        "name": campaign.name,
        "purpose": campaign.purpose,
        "dataset": campaign.dataset,
        "price": str(campaign.budget),
        "people": cohort.people,
        "shards": 0 if campaign.carrier else len(cohort.shards),
        "assumed": list(assumed(campaign)),
        "cautions": [each for each in cautions if each],
        "same_as": commands.order(order, map_).to_json(),
    }


def _parts(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of the campaign, and of its map; what is left blank is left out."""
    order, map_ = data.get("order"), data.get("map")
    if set(data) != {"order", "map"} or not isinstance(order, dict) or not isinstance(map_, dict):
        raise InputError("a campaign is ordered by an order and a map")
    return {name: value for name, value in order.items() if value not in ("", None)}, dict(order_of(map_, FIELDS))
