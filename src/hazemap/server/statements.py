"""What a map made by devices promises to the people whose devices they are, and what its answers cost."""

from datetime import UTC, datetime

from hazemap import __version__
from hazemap.algorithms import Flat, FoundBox
from hazemap.codec import dumps, loads
from hazemap.privacy.statement import Statement
from hazemap.server.campaigns import Campaign
from hazemap.trust.prices import SecureSumPrices
from hazemap.trust.tasks import KNOWN as OF_TASKS
from hazemap.trust.tasks import pure

A_DEVICE = "a person: all rows on one device"
_COHORT = "the cohort, for machines: "


def statement(campaign: Campaign) -> Statement:
    """The statement of a campaign that has ended now."""
    method, cohort = campaign.algorithm, campaign.cohort
    name = type(method.method).__name__ if isinstance(method, FoundBox) else type(method).__name__
    shards = cohort.shards
    public = (
        f"the campaign {campaign.name!r}: {campaign.purpose}",
        f"the method: {name}, with the parameters in the file",
        "the box, found by two coarse grids of the world" if isinstance(method, FoundBox) else "the box, as declared",
        f"the cohort: {cohort.people:,} people a round, in {len(shards):,} shards of up to {max(shards):,}; "
        f"{cohort.sampling.value}",
        "which devices were asked, which answered, and how many people each answer is over",
        f"{_COHORT}{dumps(cohort)}",
    )
    charged = (
        "the box" if isinstance(method, FoundBox) else "",
        "" if isinstance(method, Flat) else "how fine the cells are",
        "every number in the cells",
    )
    return Statement(
        dataset=campaign.dataset,
        unit=A_DEVICE,
        neighbours="the rows of one device, all of them, there or not; that it takes part is public",
        budget=campaign.budget,
        bounding=campaign.bounding,
        trust="secure aggregation among devices",
        assumptions=(
            *cohort.assumptions,
            "all other devices add their share of the noise, as the protocol has it",
            "what devices say is not checked: a device can add false people, as much as its bounding rule allows and "
            "more if it breaks the rules",
            "a device's own rows are its person's, and its software and randomness are sound",
        ),
        noise="discrete Laplace",
        public=public,
        charged=tuple(filter(None, charged)),
        method=f"{name} by secure aggregation",
        created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        version=__version__,
    )


def prices(said: Statement) -> SecureSumPrices | None:
    """The prices of the answers behind a statement of devices; `None` for one of another trust model."""
    found = [text.removeprefix(_COHORT) for text in said.public if text.startswith(_COHORT)]
    if said.unit != A_DEVICE or len(found) != 1:
        return None
    return SecureSumPrices(pure(said.budget), loads(found[0], OF_TASKS))
